#!/usr/bin/env python3
"""Runs the commands of golden files and compares what they print.

    run.py --bin FOLDER [--update] FILE...

A golden file holds comments (# …) and commands ($ …), each followed by what it must print: standard output as it is, standard
error after "2> ", and last the exit code when it is not 0, as "[exit N]". Commands run in a fresh folder with FOLDER first on
PATH and a plain environment, in which TESTS is the folder of all tests. With --update the files are rewritten with what is printed now.
"""
import argparse
import difflib
import os
import pathlib
import subprocess
import sys
import tempfile


def run(command, folder, environment):
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=600)
    text = done.stdout.decode("utf-8", "backslashreplace")
    if text and not text.endswith("\n"):
        text += "\n[no newline]\n"
    for line in done.stderr.decode("utf-8", "backslashreplace").splitlines():
        text += "2> " + line + "\n"
    if done.returncode != 0:
        text += f"[exit {done.returncode}]\n"
    return text


def replay(text, bin_folder):
    """The file's text with every command's output replaced by what it prints now."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PATH": f"{bin_folder}:/usr/bin:/bin", "HOME": folder, "LC_ALL": "C", "TERM": "xterm",
                       "TESTS": str(pathlib.Path(__file__).resolve().parent.parent)}
        result, expecting = [], False
        for line in text.splitlines(keepends=True):
            if line.startswith("$ "):
                result += [line, run(line[2:].rstrip("\n"), folder, environment)]
                expecting = True
            elif line.startswith("# "):
                # A comment after a command is set off by an empty line, which is not output.
                result.append("\n" + line if expecting else line)
                expecting = False
            elif not expecting:
                result.append(line)
        return "".join(result)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--update", action="store_true")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    if not os.access(pathlib.Path(options.bin) / "sibyl", os.X_OK):
        sys.exit(f"{options.bin}/sibyl is not built")
    failed = False
    for file in options.files:
        expected = file.read_text(encoding="utf-8")
        actual = replay(expected, options.bin)
        if actual == expected:
            continue
        if options.update:
            file.write_text(actual, encoding="utf-8")
            print(f"updated {file}")
            continue
        failed = True
        sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), actual.splitlines(True), f"{file}", "printed now"))
    if failed:
        sys.exit("\nIf the new output is right: tests/golden/update.sh, and read the difference before committing it.")


if __name__ == "__main__":
    main()
