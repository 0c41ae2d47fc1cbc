"""The worker of the cases, with Celery's defaults. It ends with the process that started it, however that ended: its
standard input closes then.
"""

import os
import threading

from tasks import app


def end_with_parent():
    # Not by `sys.stdin`, whose lock the children of the pool would inherit.
    os.read(0, 1)
    os._exit(1)


def main():
    threading.Thread(target=end_with_parent, daemon=True).start()
    # One process: Celery stores that a task is retried after it has sent the next attempt, which another process may end
    # before that. Its default pool does not run on Windows.
    pool = ["--pool", "solo"] if os.name == "nt" else ["--concurrency", "1"]
    app.worker_main(["worker", "--loglevel", "info", "--queues", "celery,late", *pool])


if __name__ == "__main__":
    main()
