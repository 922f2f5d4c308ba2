#!/bin/sh
# Tells whether programs can be built with the race detector: cgo is on and the
# C compiler finds its headers, which a bare gcc without libc's does not.
set -eu

[ "$(go env CGO_ENABLED)" = 1 ]
# shellcheck disable=SC2046 # CC may hold flags
echo '#include <stdlib.h>' | $(go env CC) -xc -fsyntax-only - 2>/dev/null
