"""Runs jobs in other processes, because the reference can abort its process."""

import multiprocessing
import os
import threading

# Seconds until a job is considered hung.
TIMEOUT = 120


def run(function, jobs, died):
    """Calls `function(job)` for every job in one of a few worker processes; the results are unordered.

    A job whose process dies gives `died(job, exit code)` instead, and the others go on in a new process.
    """
    context = multiprocessing.get_context("spawn")
    waiting, results, lock = list(reversed(jobs)), [], threading.Lock()

    def next_job():
        with lock:
            return waiting.pop() if waiting else None

    def keep(result):
        with lock:
            results.append(result)

    def worker():
        process = connection = None
        while (job := next_job()) is not None:
            if process is None:
                connection, child_connection = context.Pipe()
                process = context.Process(target=_serve, args=(function, child_connection), daemon=True)
                process.start()
                child_connection.close()
            try:
                connection.send(job)
                if not connection.poll(TIMEOUT):
                    process.kill()
                keep(connection.recv())
            except (EOFError, OSError):
                process.join()
                keep(died(job, process.exitcode))
                process = None
        if process is not None:
            connection.close()
            process.join()

    threads = [threading.Thread(target=worker) for _ in range(os.cpu_count() or 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def _serve(function, connection):
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        connection.send(function(job))
