#!/bin/sh
# Unpacks the command that lies beside this file, once, and runs it.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
command=$here/unpacked/NAME
if [ ! "$command" -nt "$here/NAME.gz" ]; then
    mkdir -p "$here/unpacked"
    gzip -dc "$here/NAME.gz" > "$command.$$"
    chmod +x "$command.$$"
    mv -f "$command.$$" "$command"
fi
exec "$command" "$@"
