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

}  // namespace seqpack::testing

// The definitions that the program, and every library that has none of its own, calls in the place
// of the runtime's. They have names of C++ and the symbols of the runtime: its headers, which
// declare some of them twice, stay as they are.

namespace seqpack::testing::interposed {

/// Notes a call for the audit of this thread. The default argument is the address that the function
/// it is used in returns to.
inline void note(const recorded_call& call, const void* caller = __builtin_return_address(0)) {
  runtime_audit::add(call, caller);
}

cudaError_t launch_kernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                          std::size_t shared, cudaStream_t stream) asm("__cudaLaunchKernel");
cudaError_t launch_kernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                          std::size_t shared, cudaStream_t stream) {
  static const auto next =
      find_next<cudaError_t(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t)>(
          "__cudaLaunchKernel");
  note(in_stream(runtime_call::launch, stream));
  return next(kernel, grid, block, arguments, shared, stream);
}

cudaError_t launch_kernel_per_thread(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                     std::size_t shared,
                                     cudaStream_t stream) asm("__cudaLaunchKernel_ptsz");
cudaError_t launch_kernel_per_thread(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                     std::size_t shared, cudaStream_t stream) {
  static const auto next =
      find_next<cudaError_t(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t)>(
          "__cudaLaunchKernel_ptsz");
  note(in_stream(runtime_call::launch, stream));
  return next(kernel, grid, block, arguments, shared, stream);
}

cudaError_t launch(const void* function, dim3 grid, dim3 block, void** arguments,
                   std::size_t shared, cudaStream_t stream) asm("cudaLaunchKernel");
cudaError_t launch(const void* function, dim3 grid, dim3 block, void** arguments,
                   std::size_t shared, cudaStream_t stream) {
  static const auto next =
      find_next<cudaError_t(const void*, dim3, dim3, void**, std::size_t, cudaStream_t)>(
          "cudaLaunchKernel");
  note(in_stream(runtime_call::launch, stream));
  return next(function, grid, block, arguments, shared, stream);
}

cudaError_t launch_per_thread(const void* function, dim3 grid, dim3 block, void** arguments,
                              std::size_t shared, cudaStream_t stream) asm("cudaLaunchKernel_ptsz");
cudaError_t launch_per_thread(const void* function, dim3 grid, dim3 block, void** arguments,
                              std::size_t shared, cudaStream_t stream) {
  static const auto next =
      find_next<cudaError_t(const void*, dim3, dim3, void**, std::size_t, cudaStream_t)>(
          "cudaLaunchKernel_ptsz");
  note(in_stream(runtime_call::launch, stream));
  return next(function, grid, block, arguments, shared, stream);
}

cudaError_t launch_cooperative(const void* function, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared,
                               cudaStream_t stream) asm("cudaLaunchCooperativeKernel");
cudaError_t launch_cooperative(const void* function, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared, cudaStream_t stream) {
  static const auto next =
      find_next<cudaError_t(const void*, dim3, dim3, void**, std::size_t, cudaStream_t)>(
          "cudaLaunchCooperativeKernel");
  note(in_stream(runtime_call::launch, stream));
  return next(function, grid, block, arguments, shared, stream);
}

cudaError_t launch_extended(const cudaLaunchConfig_t* config, const void* function,
                            void** arguments) asm("cudaLaunchKernelExC");
cudaError_t launch_extended(const cudaLaunchConfig_t* config, const void* function,
                            void** arguments) {
  static const auto next =
      find_next<cudaError_t(const cudaLaunchConfig_t*, const void*, void**)>("cudaLaunchKernelExC");
  note(in_stream(runtime_call::launch, config->stream));
  return next(config, function, arguments);
}

cudaError_t launch_extended_per_thread(const cudaLaunchConfig_t* config, const void* function,
                                       void** arguments) asm("cudaLaunchKernelExC_ptsz");
cudaError_t launch_extended_per_thread(const cudaLaunchConfig_t* config, const void* function,
                                       void** arguments) {
  static const auto next = find_next<cudaError_t(const cudaLaunchConfig_t*, const void*, void**)>(
      "cudaLaunchKernelExC_ptsz");
  note(in_stream(runtime_call::launch, config->stream));
  return next(config, function, arguments);
}

cudaError_t launch_graph(cudaGraphExec_t graph, cudaStream_t stream) asm("cudaGraphLaunch");
cudaError_t launch_graph(cudaGraphExec_t graph, cudaStream_t stream) {
  static const auto next = find_next<cudaError_t(cudaGraphExec_t, cudaStream_t)>("cudaGraphLaunch");
  note(in_stream(runtime_call::graph_launch, stream));
  return next(graph, stream);
}

cudaError_t launch_host_function(cudaStream_t stream, cudaHostFn_t function,
                                 void* data) asm("cudaLaunchHostFunc");
cudaError_t launch_host_function(cudaStream_t stream, cudaHostFn_t function, void* data) {
  static const auto next =
      find_next<cudaError_t(cudaStream_t, cudaHostFn_t, void*)>("cudaLaunchHostFunc");
  note(in_stream(runtime_call::host_function, stream));
  return next(stream, function, data);
}

cudaError_t add_callback(cudaStream_t stream, cudaStreamCallback_t function, void* data,
                         unsigned int flags) asm("cudaStreamAddCallback");
cudaError_t add_callback(cudaStream_t stream, cudaStreamCallback_t function, void* data,
                         unsigned int flags) {
  static const auto next =
      find_next<cudaError_t(cudaStream_t, cudaStreamCallback_t, void*, unsigned int)>(
          "cudaStreamAddCallback");
  note(in_stream(runtime_call::host_function, stream));
  return next(stream, function, data, flags);
}

cudaError_t set(void* to, int value, std::size_t bytes) asm("cudaMemset");
cudaError_t set(void* to, int value, std::size_t bytes) {
  static const auto next = find_next<cudaError_t(void*, int, std::size_t)>("cudaMemset");
  note(in_stream(runtime_call::memset, nullptr, bytes));
  return next(to, value, bytes);
}

cudaError_t set_in_stream(void* to, int value, std::size_t bytes,
                          cudaStream_t stream) asm("cudaMemsetAsync");
cudaError_t set_in_stream(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  static const auto next =
      find_next<cudaError_t(void*, int, std::size_t, cudaStream_t)>("cudaMemsetAsync");
  note(in_stream(runtime_call::memset, stream, bytes));
  return next(to, value, bytes, stream);
}

cudaError_t set_per_thread(void* to, int value, std::size_t bytes,
                           cudaStream_t stream) asm("cudaMemsetAsync_ptsz");
cudaError_t set_per_thread(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  static const auto next =
      find_next<cudaError_t(void*, int, std::size_t, cudaStream_t)>("cudaMemsetAsync_ptsz");
  note(in_stream(runtime_call::memset, stream, bytes));
  return next(to, value, bytes, stream);
}

cudaError_t copy(void* to, const void* from, std::size_t bytes,
                 cudaMemcpyKind kind) asm("cudaMemcpy");
cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  static const auto next =
      find_next<cudaError_t(void*, const void*, std::size_t, cudaMemcpyKind)>("cudaMemcpy");
  note(copy_of(to, from, bytes, nullptr, true));
  return next(to, from, bytes, kind);
}

cudaError_t copy_per_thread(void* to, const void* from, std::size_t bytes,
                            cudaMemcpyKind kind) asm("cudaMemcpy_ptds");
cudaError_t copy_per_thread(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  static const auto next =
      find_next<cudaError_t(void*, const void*, std::size_t, cudaMemcpyKind)>("cudaMemcpy_ptds");
  note(copy_of(to, from, bytes, nullptr, true));
  return next(to, from, bytes, kind);
}

cudaError_t copy_in_stream(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                           cudaStream_t stream) asm("cudaMemcpyAsync");
cudaError_t copy_in_stream(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                           cudaStream_t stream) {
  static const auto next =
      find_next<cudaError_t(void*, const void*, std::size_t, cudaMemcpyKind, cudaStream_t)>(
          "cudaMemcpyAsync");
  note(copy_of(to, from, bytes, stream, false));
  return next(to, from, bytes, kind, stream);
}

cudaError_t copy_in_stream_per_thread(void* to, const void* from, std::size_t bytes,
                                      cudaMemcpyKind kind,
                                      cudaStream_t stream) asm("cudaMemcpyAsync_ptsz");
cudaError_t copy_in_stream_per_thread(void* to, const void* from, std::size_t bytes,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  static const auto next =
      find_next<cudaError_t(void*, const void*, std::size_t, cudaMemcpyKind, cudaStream_t)>(
          "cudaMemcpyAsync_ptsz");
  note(copy_of(to, from, bytes, stream, false));
  return next(to, from, bytes, kind, stream);
}

cudaError_t allocate_in_stream(void** made, std::size_t bytes,
                               cudaStream_t stream) asm("cudaMallocAsync");
cudaError_t allocate_in_stream(void** made, std::size_t bytes, cudaStream_t stream) {
  static const auto next =
      find_next<cudaError_t(void**, std::size_t, cudaStream_t)>("cudaMallocAsync");
  note(in_stream(runtime_call::allocate, stream, bytes));
  return next(made, bytes, stream);
}

cudaError_t allocate_per_thread(void** made, std::size_t bytes,
                                cudaStream_t stream) asm("cudaMallocAsync_ptsz");
cudaError_t allocate_per_thread(void** made, std::size_t bytes, cudaStream_t stream) {
  static const auto next =
      find_next<cudaError_t(void**, std::size_t, cudaStream_t)>("cudaMallocAsync_ptsz");
  note(in_stream(runtime_call::allocate, stream, bytes));
  return next(made, bytes, stream);
}

cudaError_t allocate_from_pool(void** made, std::size_t bytes, cudaMemPool_t pool,
                               cudaStream_t stream) asm("cudaMallocFromPoolAsync");
cudaError_t allocate_from_pool(void** made, std::size_t bytes, cudaMemPool_t pool,
                               cudaStream_t stream) {
  static const auto next = find_next<cudaError_t(void**, std::size_t, cudaMemPool_t, cudaStream_t)>(
      "cudaMallocFromPoolAsync");
  note(in_stream(runtime_call::allocate, stream, bytes));
  return next(made, bytes, pool, stream);
}

cudaError_t allocate_from_pool_per_thread(void** made, std::size_t bytes, cudaMemPool_t pool,
                                          cudaStream_t stream) asm("cudaMallocFromPoolAsync_ptsz");
cudaError_t allocate_from_pool_per_thread(void** made, std::size_t bytes, cudaMemPool_t pool,
                                          cudaStream_t stream) {
  static const auto next = find_next<cudaError_t(void**, std::size_t, cudaMemPool_t, cudaStream_t)>(
      "cudaMallocFromPoolAsync_ptsz");
  note(in_stream(runtime_call::allocate, stream, bytes));
  return next(made, bytes, pool, stream);
}

cudaError_t release_in_stream(void* memory, cudaStream_t stream) asm("cudaFreeAsync");
cudaError_t release_in_stream(void* memory, cudaStream_t stream) {
  static const auto next = find_next<cudaError_t(void*, cudaStream_t)>("cudaFreeAsync");
  note(in_stream(runtime_call::release, stream));
  return next(memory, stream);
}

cudaError_t release_per_thread(void* memory, cudaStream_t stream) asm("cudaFreeAsync_ptsz");
cudaError_t release_per_thread(void* memory, cudaStream_t stream) {
  static const auto next = find_next<cudaError_t(void*, cudaStream_t)>("cudaFreeAsync_ptsz");
  note(in_stream(runtime_call::release, stream));
  return next(memory, stream);
}

cudaError_t allocate(void** made, std::size_t bytes) asm("cudaMalloc");
cudaError_t allocate(void** made, std::size_t bytes) {
  static const auto next = find_next<cudaError_t(void**, std::size_t)>("cudaMalloc");
  note(of_device(runtime_call::allocate_device, false, bytes));
  return next(made, bytes);
}

cudaError_t release(void* memory) asm("cudaFree");
cudaError_t release(void* memory) {
  static const auto next = find_next<cudaError_t(void*)>("cudaFree");
  note(of_device(runtime_call::release_device, memory != nullptr));
  return next(memory);
}

cudaError_t allocate_host(void** made, std::size_t bytes) asm("cudaMallocHost");
cudaError_t allocate_host(void** made, std::size_t bytes) {
  static const auto next = find_next<cudaError_t(void**, std::size_t)>("cudaMallocHost");
  note(of_device(runtime_call::allocate_pinned, true, bytes));
  return next(made, bytes);
}

cudaError_t allocate_host_with_flags(void** made, std::size_t bytes,
                                     unsigned int flags) asm("cudaHostAlloc");
cudaError_t allocate_host_with_flags(void** made, std::size_t bytes, unsigned int flags) {
  static const auto next =
      find_next<cudaError_t(void**, std::size_t, unsigned int)>("cudaHostAlloc");
  note(of_device(runtime_call::allocate_pinned, true, bytes));
  return next(made, bytes, flags);
}

cudaError_t pin(void* memory, std::size_t bytes, unsigned int flags) asm("cudaHostRegister");
cudaError_t pin(void* memory, std::size_t bytes, unsigned int flags) {
  static const auto next =
      find_next<cudaError_t(void*, std::size_t, unsigned int)>("cudaHostRegister");
  note(of_device(runtime_call::allocate_pinned, true, bytes));
  return next(memory, bytes, flags);
}

cudaError_t release_host(void* memory) asm("cudaFreeHost");
cudaError_t release_host(void* memory) {
  static const auto next = find_next<cudaError_t(void*)>("cudaFreeHost");
  note(of_device(runtime_call::release_pinned, memory != nullptr));
  return next(memory);
}

cudaError_t unpin(void* memory) asm("cudaHostUnregister");
cudaError_t unpin(void* memory) {
  static const auto next = find_next<cudaError_t(void*)>("cudaHostUnregister");
  note(of_device(runtime_call::release_pinned, true));
  return next(memory);
}

cudaError_t allocate_managed(void** made, std::size_t bytes,
                             unsigned int flags) asm("cudaMallocManaged");
cudaError_t allocate_managed(void** made, std::size_t bytes, unsigned int flags) {
  static const auto next =
      find_next<cudaError_t(void**, std::size_t, unsigned int)>("cudaMallocManaged");
  note(of_device(runtime_call::allocate_managed, false, bytes));
  return next(made, bytes, flags);
}

cudaError_t synchronise_stream(cudaStream_t stream) asm("cudaStreamSynchronize");
cudaError_t synchronise_stream(cudaStream_t stream) {
  static const auto next = find_next<cudaError_t(cudaStream_t)>("cudaStreamSynchronize");
  note(in_stream(runtime_call::synchronise, stream));
  return next(stream);
}

cudaError_t synchronise_per_thread(cudaStream_t stream) asm("cudaStreamSynchronize_ptsz");
cudaError_t synchronise_per_thread(cudaStream_t stream) {
  static const auto next = find_next<cudaError_t(cudaStream_t)>("cudaStreamSynchronize_ptsz");
  note(in_stream(runtime_call::synchronise, stream));
  return next(stream);
}

cudaError_t synchronise_device() asm("cudaDeviceSynchronize");
cudaError_t synchronise_device() {
  static const auto next = find_next<cudaError_t()>("cudaDeviceSynchronize");
  note(of_device(runtime_call::synchronise, true));
  return next();
}

cudaError_t synchronise_event(cudaEvent_t event) asm("cudaEventSynchronize");
cudaError_t synchronise_event(cudaEvent_t event) {
  static const auto next = find_next<cudaError_t(cudaEvent_t)>("cudaEventSynchronize");
  note(of_device(runtime_call::synchronise, true));
  return next(event);
}

cudaError_t query_stream(cudaStream_t stream) asm("cudaStreamQuery");
cudaError_t query_stream(cudaStream_t stream) {
  static const auto next = find_next<cudaError_t(cudaStream_t)>("cudaStreamQuery");
  note(in_stream(runtime_call::query, stream));
  return next(stream);
}

cudaError_t query_per_thread(cudaStream_t stream) asm("cudaStreamQuery_ptsz");
cudaError_t query_per_thread(cudaStream_t stream) {
  static const auto next = find_next<cudaError_t(cudaStream_t)>("cudaStreamQuery_ptsz");
  note(in_stream(runtime_call::query, stream));
  return next(stream);
}

cudaError_t query_event(cudaEvent_t event) asm("cudaEventQuery");
cudaError_t query_event(cudaEvent_t event) {
  static const auto next = find_next<cudaError_t(cudaEvent_t)>("cudaEventQuery");
  note(of_device(runtime_call::query, false));
  return next(event);
}

cudaError_t record_event(cudaEvent_t event, cudaStream_t stream) asm("cudaEventRecord");
cudaError_t record_event(cudaEvent_t event, cudaStream_t stream) {
  static const auto next = find_next<cudaError_t(cudaEvent_t, cudaStream_t)>("cudaEventRecord");
  note(in_stream(runtime_call::record_event, stream));
  return next(event, stream);
}

cudaError_t record_event_per_thread(cudaEvent_t event,
                                    cudaStream_t stream) asm("cudaEventRecord_ptsz");
cudaError_t record_event_per_thread(cudaEvent_t event, cudaStream_t stream) {
  static const auto next =
      find_next<cudaError_t(cudaEvent_t, cudaStream_t)>("cudaEventRecord_ptsz");
  note(in_stream(runtime_call::record_event, stream));
  return next(event, stream);
}

cudaError_t wait_event(cudaStream_t stream, cudaEvent_t event,
                       unsigned int flags) asm("cudaStreamWaitEvent");
cudaError_t wait_event(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  static const auto next =
      find_next<cudaError_t(cudaStream_t, cudaEvent_t, unsigned int)>("cudaStreamWaitEvent");
  note(in_stream(runtime_call::wait_event, stream));
  return next(stream, event, flags);
}

cudaError_t wait_event_per_thread(cudaStream_t stream, cudaEvent_t event,
                                  unsigned int flags) asm("cudaStreamWaitEvent_ptsz");
cudaError_t wait_event_per_thread(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  static const auto next =
      find_next<cudaError_t(cudaStream_t, cudaEvent_t, unsigned int)>("cudaStreamWaitEvent_ptsz");
  note(in_stream(runtime_call::wait_event, stream));
  return next(stream, event, flags);
}

}  // namespace seqpack::testing::interposed
