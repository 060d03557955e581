"""Runs `tercet view --tui` in a pseudo-terminal.

usage: terminal_check.py --tercet PROGRAM

The program draws in raw mode on the alternate screen. When it ends, by a key or by a signal, the terminal is as before.
"""

import argparse
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

ENTER, LEAVE, SHOW = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25h"
SECONDS = 60


def default_interrupt():
    """A process in the background ignores interrupts, and so would the program."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Browser:
    """The program in a terminal of 100 columns and 30 rows."""

    def __init__(self, tercet, path):
        self.terminal, self.other = pty.openpty()
        fcntl.ioctl(self.other, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.before = termios.tcgetattr(self.other)
        environment = {**os.environ, "TERM": "xterm-256color"}
        self.process = subprocess.Popen([tercet, "view", "--tui", path], stdin=self.other, stdout=self.other,
                                        stderr=self.other, env=environment, start_new_session=True,
                                        preexec_fn=default_interrupt)
        self.seen = b""

    def read(self, seconds=0.05):
        if select.select([self.terminal], [], [], seconds)[0]:
            self.seen += os.read(self.terminal, 1 << 16)

    def wait_for(self, text):
        end = time.monotonic() + SECONDS
        while text not in self.seen:
            assert time.monotonic() < end and self.process.poll() is None, f"{text} is not shown: {self.seen[-300:]}"
            self.read()

    def is_raw(self):
        return not termios.tcgetattr(self.other)[3] & (termios.ICANON | termios.ECHO)

    def ended(self):
        """The exit code; the terminal must be as before."""
        end = time.monotonic() + SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < end, "the program does not end"
            self.read()
        self.read(0.2)
        assert termios.tcgetattr(self.other) == self.before, "the terminal is not restored"
        assert LEAVE in self.seen and self.seen.rfind(SHOW) > self.seen.rfind(ENTER), "the screen is not left"
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.terminal)
        os.close(self.other)


def quits_by_a_key(browser):
    browser.wait_for(b"t2m")
    assert browser.is_raw() and ENTER in browser.seen
    os.write(browser.terminal, b"q")
    assert browser.ended() == 0


def ends_by_control_c(browser):
    browser.wait_for(b"t2m")
    os.write(browser.terminal, b"\x03")
    assert browser.ended() == 0


def ends_by_a_signal(browser):
    browser.wait_for(b"t2m")
    browser.process.send_signal(signal.SIGINT)
    assert browser.ended() == 130


def redraws_after_a_resize(browser):
    browser.wait_for(b"t2m")
    drawn = len(browser.seen)
    fcntl.ioctl(browser.other, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 60, 0, 0))
    browser.process.send_signal(signal.SIGWINCH)
    end = time.monotonic() + SECONDS
    while len(browser.seen) <= drawn:
        assert time.monotonic() < end, "nothing is drawn after a resize"
        browser.read()
    os.write(browser.terminal, b"q")
    assert browser.ended() == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tercet", required=True)
    tercet = os.path.abspath(parser.parse_args().tercet)
    passed, failed = 0, 0
    with tempfile.TemporaryDirectory(prefix="tercet-view-") as directory:
        demo = os.path.join(directory, "demo")
        subprocess.run([tercet, "demo", demo, "-q"], check=True, stdout=subprocess.DEVNULL)
        for check in (quits_by_a_key, ends_by_control_c, ends_by_a_signal, redraws_after_a_resize):
            browser = Browser(tercet, os.path.join(demo, "weather.tet"))
            try:
                check(browser)
                passed += 1
            except AssertionError as error:
                failed += 1
                print(f"failed: {check.__name__}: {error}")
            finally:
                browser.close()
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
