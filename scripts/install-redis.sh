#!/bin/sh
# Puts redis-server on the PATH, through the system's package manager if it is
# not there yet. The tests start private servers of their own, so the service
# that some packages bring along is neither started nor enabled.
set -eu

have() { command -v "$1" >/dev/null 2>&1; }
say() { echo "install-redis: $*" >&2; }
fail() {
	say "$*"
	say "Install Redis 6.2 or newer by hand so that redis-server is on the PATH, then try again."
	exit 1
}
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif have sudo; then
		sudo "$@"
	else
		fail "redis-server is missing, and installing it takes root: there is no sudo."
	fi
}
installing() { say "redis-server is missing: installing the package $2 with $1."; }

# On Debian and its like the package enables and starts a service on port 6379.
# systemd does not start what is masked; without systemd it is stopped again.
with_apt() {
	installing apt-get redis-server
	unit=
	if [ -d /run/systemd/system ]; then unit=redis-server.service; fi
	if [ "$unit" ]; then as_root systemctl --runtime mask "$unit"; fi
	apt_install || { as_root apt-get update && apt_install; } || failed=yes
	if [ "$unit" ]; then
		as_root systemctl --runtime unmask "$unit"
		as_root systemctl disable "$unit" || true # not there if the installation failed
	elif [ -x /etc/init.d/redis-server ]; then
		as_root /etc/init.d/redis-server stop >&2
		as_root update-rc.d redis-server disable
	fi
}
apt_install() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends redis-server
}

# Some distributions have moved on to Valkey, which brings a redis-server too.
with() {
	manager=$1 packages=$2
	shift 2
	for package in $packages; do
		installing "$manager" "$package"
		if "$@" "$package"; then return; fi
	done
	failed=yes
}

if have redis-server; then exit 0; fi

failed=
if have apt-get; then
	with_apt
elif have dnf; then
	with dnf "redis valkey-compat-redis" as_root dnf install -y
elif have yum; then
	with yum redis as_root yum install -y
elif have apk; then
	with apk "redis valkey-compat" as_root apk add
elif have pacman; then
	with pacman "redis valkey" as_root pacman -Sy --noconfirm --needed
elif have zypper; then
	with zypper redis as_root zypper --non-interactive install
elif have brew; then
	with brew redis brew install
else
	fail "redis-server is missing, and there is none of apt-get, dnf, yum, apk, pacman, zypper and brew to install it with."
fi
if [ "$failed" ]; then fail "The package manager could not install redis-server; its messages are above."; fi
if ! have redis-server; then fail "The package is installed, but redis-server is not on the PATH."; fi
say "installed $(redis-server --version)"
