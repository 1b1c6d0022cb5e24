# SPDX-License-Identifier: Apache-2.0
"""The revision of a git work tree, determined without obeying its configuration.

A repository's own configuration and hooks can name programs that git runs, even to say whether a
file was changed (`core.fsmonitor`, filters of contents, `core.hooksPath`, the transport of a
partial clone). So git only resolves names there, which runs nothing. Files are compared through an
empty repository that borrows the objects, with a copy of the index: no line of the configuration is
read but a few checked words that say how contents compare.
"""

from __future__ import annotations

from iolab.base.errors import RunError
from iolab.hosts.base.host import Host

_SCRIPT = r"""
for name in $(git rev-parse --local-env-vars); do unset "$name"; done
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_ATTR_NOSYSTEM=1 GIT_OPTIONAL_LOCKS=0
export GIT_ALLOW_PROTOCOL=none GIT_NO_LAZY_FETCH=1 GIT_NO_REPLACE_OBJECTS=1 GIT_TERMINAL_PROMPT=0 GIT_PAGER=cat LC_ALL=C
there() { git --no-pager -c 'safe.directory=*' -c core.fsmonitor=false -c core.hooksPath=/dev/null -C "$path" "$@"; }
whole() { case $1 in /*) echo "$1" ;; *) echo "$top/$1" ;; esac; }
path=$1
head=$(there rev-parse --verify HEAD) && top=$(there rev-parse --show-toplevel) && format=$(there rev-parse --show-object-format) &&
    path=$top && index=$(whole "$(there rev-parse --git-path index)") && objects=$(whole "$(there rev-parse --git-path objects)") &&
    shared=$(whole "$(there rev-parse --git-path .)") || exit 128
own=$(mktemp -d) || exit 128
trap 'rm -rf "$own"' EXIT
trap 'exit 130' HUP INT TERM
mkdir "$own/refs" "$own/objects" && echo "$head" > "$own/HEAD" || exit 128
printf '[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectformat = %s\n' "$format" > "$own/config"
for key in core.fileMode core.symlinks core.ignoreCase core.trustctime core.autocrlf core.eol core.checkStat; do
    value=$(there config --get "$key")
    case $value in true|false|input|lf|crlf|native|default|minimal) git config -f "$own/config" "$key" "$value" ;; esac
done
[ ! -e "$index" ] || cp -p "$index" "$own/index" || exit 128
for one in "$shared"/sharedindex.*; do [ ! -f "$one" ] || ln -s "$one" "$own/" || exit 128; done
export GIT_DIR=$own GIT_WORK_TREE=$top GIT_INDEX_FILE=$own/index GIT_OBJECT_DIRECTORY=$objects
cd "$top" || exit 128
git update-index -q --refresh --ignore-submodules > /dev/null
git --no-pager diff-index --quiet --no-ext-diff --no-textconv --ignore-submodules=dirty "$head" --
case $? in 0) echo "$head" ;; 1) echo "$head-dirty" ;; *) exit 128 ;; esac
"""
_PATIENCE = 120.0
"""Seconds: a large tree that isn't in memory is slow to look at."""


def revision(host: Host, name: str, path: str) -> str:
    """Commit of a git work tree, with `-dirty` if tracked files were changed; RunError if it can't
    be determined.

    Files that only a filter of the repository would make equal count as changed once they were
    touched.
    """
    answer = host.run(["sh", "-c", _SCRIPT, "sh", path], timeout=_PATIENCE)
    text = answer.stdout.strip()
    if answer.exit_code or not text:
        said = answer.stderr.strip().splitlines()
        raise RunError(
            f"revision of '{name}' cannot be determined: {said[-1] if said else 'git says nothing'}",
            where=path,
            hint="name a git work tree under study.revisions, or take it out",
        )
    return text
