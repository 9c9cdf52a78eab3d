# shellcheck shell=bash
# To be sourced by bash: installing the Debian packages that a script needs.

# require_packages [--no-install] NAME...
# Installs those of the packages that are missing, after saying which on standard error; with
# --no-install it only says so. Returns non-zero where a package is missing and stays so.
# Everything goes to standard error. Runs apt-get as root, through sudo where that is needed.
require_packages() {
  local install=yes
  if [[ "${1-}" == --no-install ]]; then
    install=no
    shift
  fi
  if ! command -v dpkg-query > /dev/null; then
    echo "not a Debian system; what is needed has the Debian names: $*" >&2
    return 0
  fi

  local name missing=()
  for name in "$@"; do
    package_installed "$name" || missing+=("$name")
  done
  (( ${#missing[@]} == 0 )) && return 0

  echo "missing Debian packages: ${missing[*]}" >&2
  [[ $install == yes ]] || return 1

  local as_root=()
  if (( EUID != 0 )); then
    if ! command -v sudo > /dev/null; then
      echo "installing them takes root, and there is no sudo" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  echo "installing them" >&2
  "${as_root[@]}" apt-get update >&2 || return
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}" >&2
}

# Whether a package is installed, of whatever architecture.
package_installed() {
  local states
  states=$(dpkg-query -W -f='${db:Status-Status}\n' "$1" 2> /dev/null) || return
  [[ $'\n'"$states"$'\n' == *$'\n'installed$'\n'* ]]
}
