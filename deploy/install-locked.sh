#!/bin/sh
# Installs the packages of a lock file with pip, and shows how far it is: in a line of the terminal
# that changes, or without a terminal in a line per phase. What pip prints is shown if it fails.
#
#     sh deploy/install-locked.sh PIP LOCKFILE [OPTION...]
set -u
pip=$1 lock=$2
shift 2
total=$(grep -c == "$lock")
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

phase=
tell() { # PHASE TEXT
    if [ -t 2 ]; then
        printf '\r\033[K%s' "$2" >&2
    elif [ "$phase" != "$1" ]; then
        printf '%s...\n' "$1" >&2
    fi
    phase=$1
}

end() { # EXIT CODE
    if [ -t 2 ] && [ -n "$phase" ]; then
        printf '\r\033[K' >&2
    fi
    if [ "$1" -ne 0 ]; then
        cat "$log" >&2
    fi
    exit "$1"
}

{
    PYTHONUNBUFFERED=1 PIP_ROOT_USER_ACTION=ignore "$pip" install --disable-pip-version-check \
        --progress-bar off --require-hashes "$@" --requirement "$lock" 2>&1
    echo "ended with $?"
} | {
    count=0
    while IFS= read -r line; do
        printf '%s\n' "$line" >>"$log"
        case $line in
        'Collecting '* | 'Requirement already satisfied: '*)
            count=$((count + 1))
            name=${line#Collecting }
            name=${name#Requirement already satisfied: }
            tell 'Fetching packages' "Fetching $count of $total packages: ${name%%[=<> ]*}"
            ;;
        'Installing collected packages: '*)
            tell 'Installing packages' "Installing $total packages..."
            ;;
        'ended with '*)
            end "${line#ended with }"
            ;;
        esac
    done
    end 1 # pip was killed
}
