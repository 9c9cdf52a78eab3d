#include "support/runtime_audit.hpp"

#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace seqpack::testing {

namespace {

thread_local runtime_audit* active = nullptr;

/// Whether an address is the program's own, and not a shared library's: the definitions below serve
/// those too.
bool in_program(const void* address) {
  static const char anchor = 0;
  Dl_info ours{};
  Dl_info theirs{};
  dladdr(&anchor, &ours);
  return dladdr(address, &theirs) != 0 && theirs.dli_fbase == ours.dli_fbase;
}

const char* name_of(runtime_call what) {
  static constexpr std::array names{"launch",
                                    "graph launch",
                                    "host function",
                                    "memset",
                                    "copy",
                                    "allocate",
                                    "release",
                                    "allocate device memory",
                                    "release device memory",
                                    "allocate pinned memory",
                                    "release pinned memory",
                                    "allocate managed memory",
                                    "synchronise",
                                    "query",
                                    "record event",
                                    "wait for event"};
  return names[static_cast<std::size_t>(what)];
}
const char* name_of(copy_kind direction) {
  static constexpr std::array names{"",
                                    " on the device",
                                    " to pinned memory of the host",
                                    " to pageable memory of the host",
                                    " to the device from pinned memory",
                                    " to the device from pageable memory",
                                    " on the host"};
  return names[static_cast<std::size_t>(direction)];
}

/// Functions that neither wait nor put anything anywhere, with those that set up a program, and
/// what tests need of captures.
constexpr std::array<std::string_view, 52> harmless{
    "__cudaGetKernel",
    "__cudaInitModule",
    "__cudaPopCallConfiguration",
    "__cudaPushCallConfiguration",
    "__cudaRegisterFatBinary",
    "__cudaRegisterFatBinaryEnd",
    "__cudaRegisterFunction",
    "__cudaRegisterVar",
    "__cudaUnregisterFatBinary",
    "cudaDeviceCanAccessPeer",
    "cudaDeviceGetAttribute",
    "cudaDeviceGetDefaultMemPool",
    "cudaDeviceGetMemPool",
    "cudaDriverGetVersion",
    "cudaEventCreate",
    "cudaEventCreateWithFlags",
    "cudaEventDestroy",
    "cudaEventElapsedTime",
    "cudaFuncGetAttributes",
    "cudaFuncSetAttribute",
    "cudaGetDevice",
    "cudaGetDeviceCount",
    "cudaGetDriverEntryPointByVersion",
    "cudaGetErrorName",
    "cudaGetErrorString",
    "cudaGetLastError",
    "cudaGraphDestroy",
    "cudaGraphExecDestroy",
    "cudaGraphGetNodes",
    "cudaGraphInstantiate",
    "cudaGraphNodeGetType",
    "cudaMemPoolCreate",
    "cudaMemPoolDestroy",
    "cudaMemPoolGetAccess",
    "cudaMemPoolGetAttribute",
    "cudaMemPoolSetAccess",
    "cudaMemPoolSetAttribute",
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
    "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
    "cudaPeekAtLastError",
    "cudaPointerGetAttributes",
    "cudaRuntimeGetVersion",
    "cudaSetDevice",
    "cudaStreamBeginCapture",
    "cudaStreamCreate",
    "cudaStreamCreateWithFlags",
    "cudaStreamDestroy",
    "cudaStreamEndCapture",
    "cudaStreamGetCaptureInfo",
    "cudaStreamGetDevice",
    "cudaStreamIsCapturing",
    "cudaThreadExchangeStreamCaptureMode",
};

/// Names that an ELF file of this machine takes from elsewhere.
std::vector<std::string> undefined_names(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  const auto read = [&]<class T>(T& to, std::size_t at) {
    if (at + sizeof to > bytes.size()) throw std::runtime_error("a program that is cut short");
    std::memcpy(&to, bytes.data() + at, sizeof to);
  };
  Elf64_Ehdr head{};
  read(head, 0);
  const auto section = [&](std::size_t k) {
    Elf64_Shdr found{};
    read(found, head.e_shoff + k * head.e_shentsize);
    return found;
  };
  std::vector<std::string> names;
  for (std::size_t k = 0; k < head.e_shnum; ++k) {
    const Elf64_Shdr symbols = section(k);
    if (symbols.sh_type != SHT_DYNSYM) continue;
    const Elf64_Shdr strings = section(symbols.sh_link);
    for (std::size_t at = 0; at < symbols.sh_size; at += symbols.sh_entsize) {
      Elf64_Sym symbol{};
      read(symbol, symbols.sh_offset + at);
      if (symbol.st_shndx != SHN_UNDEF) continue;
      names.emplace_back(bytes.data() + strings.sh_offset + symbol.st_name);
    }
  }
  return names;
}

enum class side { device, pinned, pageable };

side side_of(const void* pointer) {
  cudaPointerAttributes found{};
  if (cudaPointerGetAttributes(&found, pointer) != cudaSuccess) {
    cudaGetLastError();
    return side::pageable;
  }
  if (found.type == cudaMemoryTypeDevice) return side::device;
  return found.type == cudaMemoryTypeUnregistered ? side::pageable : side::pinned;
}

copy_kind kind_of(const void* to, const void* from) {
  const side target = side_of(to);
  const side source = side_of(from);
  if (target == side::device && source == side::device) return copy_kind::device;
  if (target == side::device) {
    return source == side::pinned ? copy_kind::to_device_pinned : copy_kind::to_device_pageable;
  }
  if (source == side::device) {
    return target == side::pinned ? copy_kind::to_host_pinned : copy_kind::to_host_pageable;
  }
  return copy_kind::host;
}

/// \param blocking the host waits, whatever the memory is, but where nothing of it is the host's
recorded_call copy_of(const void* to, const void* from, std::size_t bytes, cudaStream_t stream,
                      bool blocking) {
  const copy_kind direction = kind_of(to, from);
  const bool pageable = direction == copy_kind::to_host_pageable ||
                        direction == copy_kind::to_device_pageable || direction == copy_kind::host;
  return {.what = runtime_call::copy,
          .direction = direction,
          .stream = stream,
          .has_stream = true,
          .waits = pageable || (blocking && direction != copy_kind::device),
          .bytes = bytes};
}

recorded_call in_stream(runtime_call what, cudaStream_t stream, std::size_t bytes = 0) {
  return {.what = what,
          .stream = stream,
          .has_stream = true,
          .waits = what == runtime_call::synchronise,
          .bytes = bytes};
}
recorded_call of_device(runtime_call what, bool waits, std::size_t bytes = 0) {
  return {.what = what, .waits = waits, .bytes = bytes};
}

/// The function that the program would call without the one below: the runtime's.
template <class Function>
Function* find_next(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) throw std::runtime_error(std::string("no function ") + name);
  return reinterpret_cast<Function*>(found);
}

}  // namespace

int runtime_calls::count(runtime_call what) const {
  return static_cast<int>(std::ranges::count(all, what, &recorded_call::what));
}
int runtime_calls::count(copy_kind direction) const {
  return static_cast<int>(std::ranges::count(all, direction, &recorded_call::direction));
}
int runtime_calls::waits() const {
  return static_cast<int>(std::ranges::count(all, true, &recorded_call::waits));
}
bool runtime_calls::polls() const {
  return std::ranges::any_of(
      all, [](const recorded_call& c) { return c.what == runtime_call::query && c.has_stream; });
}
bool runtime_calls::all_in(cudaStream_t stream) const {
  return std::ranges::all_of(
      all, [&](const recorded_call& c) { return !c.has_stream || c.stream == stream; });
}
std::string runtime_calls::text() const {
  std::ostringstream out;
  for (const recorded_call& c : all) {
    out << name_of(c.what) << name_of(c.direction);
    if (c.bytes > 0) out << ", " << c.bytes << " bytes";
    if (c.has_stream) out << ", stream " << c.stream;
    out << (c.waits ? ", waits\n" : "\n");
  }
  return out.str();
}

runtime_audit::runtime_audit() : outer_(std::exchange(active, this)) {}
runtime_audit::~runtime_audit() {
  active = outer_;
}

void runtime_audit::add(const recorded_call& call, const void* caller) {
  runtime_audit* const audit = std::exchange(active, nullptr);  // our own questions do not count
  if (audit == nullptr) return;
  (in_program(caller) ? audit->found_.all : audit->found_.of_libraries).push_back(call);
  active = audit;
}

std::vector<std::string> runtime_audit::unknown_functions() {
  std::vector<std::string> unknown;
  for (const std::string& name : undefined_names("/proc/self/exe")) {
    const bool of_runtime = name.starts_with("cuda") || name.starts_with("__cuda");
    if (of_runtime && std::ranges::find(harmless, name) == harmless.end()) unknown.push_back(name);
  }
  return unknown;
}

// The definitions that the program, and every library that has none of its own, calls in the place
// of the runtime's. Each notes the call, and makes it.

namespace {

/// Notes a call for the audit of this thread. The default argument is the address that the function
/// it is used in returns to.
inline void note(const recorded_call& call, const void* caller = __builtin_return_address(0)) {
  runtime_audit::add(call, caller);
}

/// The runtime's own function.
template <auto* Ours>
auto next(const char* name) {
  static const auto found = find_next<std::remove_pointer_t<decltype(Ours)>>(name);
  return found;
}

}  // namespace

extern "C" {

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared, cudaStream_t stream) {
  note(in_stream(runtime_call::launch, stream));
  return next<__cudaLaunchKernel>(__func__)(kernel, grid, block, arguments, shared, stream);
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                    std::size_t shared, cudaStream_t stream) {
  note(in_stream(runtime_call::launch, stream));
  return next<__cudaLaunchKernel_ptsz>(__func__)(kernel, grid, block, arguments, shared, stream);
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared, cudaStream_t stream) {
  note(in_stream(runtime_call::launch, stream));
  return next<cudaLaunchKernel>(__func__)(function, grid, block, arguments, shared, stream);
}

cudaError_t cudaLaunchKernel_ptsz(const void* function, dim3 grid, dim3 block, void** arguments,
                                  std::size_t shared, cudaStream_t stream) {
  note(in_stream(runtime_call::launch, stream));
  return next<cudaLaunchKernel_ptsz>(__func__)(function, grid, block, arguments, shared, stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                        void** arguments, std::size_t shared, cudaStream_t stream) {
  note(in_stream(runtime_call::launch, stream));
  return next<cudaLaunchCooperativeKernel>(__func__)(function, grid, block, arguments, shared,
                                                     stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  note(in_stream(runtime_call::launch, config->stream));
  return next<cudaLaunchKernelExC>(__func__)(config, function, arguments);
}

cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* function,
                                     void** arguments) {
  note(in_stream(runtime_call::launch, config->stream));
  return next<cudaLaunchKernelExC_ptsz>(__func__)(config, function, arguments);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  note(in_stream(runtime_call::graph_launch, stream));
  return next<cudaGraphLaunch>(__func__)(graph, stream);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  note(in_stream(runtime_call::host_function, stream));
  return next<cudaLaunchHostFunc>(__func__)(stream, function, data);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void* data,
                                  unsigned int flags) {
  note(in_stream(runtime_call::host_function, stream));
  return next<cudaStreamAddCallback>(__func__)(stream, function, data, flags);
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  note(in_stream(runtime_call::memset, nullptr, bytes));
  return next<cudaMemset>(__func__)(to, value, bytes);
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  note(in_stream(runtime_call::memset, stream, bytes));
  return next<cudaMemsetAsync>(__func__)(to, value, bytes, stream);
}

cudaError_t cudaMemsetAsync_ptsz(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  note(in_stream(runtime_call::memset, stream, bytes));
  return next<cudaMemsetAsync_ptsz>(__func__)(to, value, bytes, stream);
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  note(copy_of(to, from, bytes, nullptr, true));
  return next<cudaMemcpy>(__func__)(to, from, bytes, kind);
}

cudaError_t cudaMemcpy_ptds(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  note(copy_of(to, from, bytes, nullptr, true));
  return next<cudaMemcpy_ptds>(__func__)(to, from, bytes, kind);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  note(copy_of(to, from, bytes, stream, false));
  return next<cudaMemcpyAsync>(__func__)(to, from, bytes, kind, stream);
}

cudaError_t cudaMemcpyAsync_ptsz(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                 cudaStream_t stream) {
  note(copy_of(to, from, bytes, stream, false));
  return next<cudaMemcpyAsync_ptsz>(__func__)(to, from, bytes, kind, stream);
}

cudaError_t cudaMallocAsync(void** made, std::size_t bytes, cudaStream_t stream) {
  note(in_stream(runtime_call::allocate, stream, bytes));
  return next<cudaMallocAsync>(__func__)(made, bytes, stream);
}

cudaError_t cudaMallocAsync_ptsz(void** made, std::size_t bytes, cudaStream_t stream) {
  note(in_stream(runtime_call::allocate, stream, bytes));
  return next<cudaMallocAsync_ptsz>(__func__)(made, bytes, stream);
}

cudaError_t cudaMallocFromPoolAsync(void** made, std::size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  note(in_stream(runtime_call::allocate, stream, bytes));
  return next<cudaMallocFromPoolAsync>(__func__)(made, bytes, pool, stream);
}

cudaError_t cudaMallocFromPoolAsync_ptsz(void** made, std::size_t bytes, cudaMemPool_t pool,
                                         cudaStream_t stream) {
  note(in_stream(runtime_call::allocate, stream, bytes));
  return next<cudaMallocFromPoolAsync_ptsz>(__func__)(made, bytes, pool, stream);
}

cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  note(in_stream(runtime_call::release, stream));
  return next<cudaFreeAsync>(__func__)(memory, stream);
}

cudaError_t cudaFreeAsync_ptsz(void* memory, cudaStream_t stream) {
  note(in_stream(runtime_call::release, stream));
  return next<cudaFreeAsync_ptsz>(__func__)(memory, stream);
}

cudaError_t cudaMalloc(void** made, std::size_t bytes) {
  note(of_device(runtime_call::allocate_device, false, bytes));
  return next<cudaMalloc>(__func__)(made, bytes);
}

cudaError_t cudaFree(void* memory) {
  note(of_device(runtime_call::release_device, memory != nullptr));
  return next<cudaFree>(__func__)(memory);
}

cudaError_t cudaMallocHost(void** made, std::size_t bytes) {
  note(of_device(runtime_call::allocate_pinned, true, bytes));
  return next<cudaMallocHost>(__func__)(made, bytes);
}

cudaError_t cudaHostAlloc(void** made, std::size_t bytes, unsigned int flags) {
  note(of_device(runtime_call::allocate_pinned, true, bytes));
  return next<cudaHostAlloc>(__func__)(made, bytes, flags);
}

cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned int flags) {
  note(of_device(runtime_call::allocate_pinned, true, bytes));
  return next<cudaHostRegister>(__func__)(memory, bytes, flags);
}

cudaError_t cudaFreeHost(void* memory) {
  note(of_device(runtime_call::release_pinned, memory != nullptr));
  return next<cudaFreeHost>(__func__)(memory);
}

cudaError_t cudaHostUnregister(void* memory) {
  note(of_device(runtime_call::release_pinned, true));
  return next<cudaHostUnregister>(__func__)(memory);
}

cudaError_t cudaMallocManaged(void** made, std::size_t bytes, unsigned int flags) {
  note(of_device(runtime_call::allocate_managed, false, bytes));
  return next<cudaMallocManaged>(__func__)(made, bytes, flags);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  note(in_stream(runtime_call::synchronise, stream));
  return next<cudaStreamSynchronize>(__func__)(stream);
}

cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream) {
  note(in_stream(runtime_call::synchronise, stream));
  return next<cudaStreamSynchronize_ptsz>(__func__)(stream);
}

cudaError_t cudaDeviceSynchronize() {
  note(of_device(runtime_call::synchronise, true));
  return next<cudaDeviceSynchronize>(__func__)();
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  note(of_device(runtime_call::synchronise, true));
  return next<cudaEventSynchronize>(__func__)(event);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  note(in_stream(runtime_call::query, stream));
  return next<cudaStreamQuery>(__func__)(stream);
}

cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream) {
  note(in_stream(runtime_call::query, stream));
  return next<cudaStreamQuery_ptsz>(__func__)(stream);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  note(of_device(runtime_call::query, false));
  return next<cudaEventQuery>(__func__)(event);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  note(in_stream(runtime_call::record_event, stream));
  return next<cudaEventRecord>(__func__)(event, stream);
}

cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream) {
  note(in_stream(runtime_call::record_event, stream));
  return next<cudaEventRecord_ptsz>(__func__)(event, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  note(in_stream(runtime_call::wait_event, stream));
  return next<cudaStreamWaitEvent>(__func__)(stream, event, flags);
}

cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  note(in_stream(runtime_call::wait_event, stream));
  return next<cudaStreamWaitEvent_ptsz>(__func__)(stream, event, flags);
}

}  // extern "C"

}  // namespace seqpack::testing
