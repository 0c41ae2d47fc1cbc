"""A Celery application, for the worker and for the cases that send to it."""

import os
import time

from celery import Celery

from emulator import TRANSPORT, URL

app = Celery("tasks", broker=URL, backend="file://" + os.environ["CELERY_RESULTS"])
app.conf.broker_transport_options = TRANSPORT
app.conf.task_routes = {"tasks.late": {"queue": "late"}}


@app.task
def add(one, other):
    return one + other


@app.task(bind=True, max_retries=3)
def unlucky(self):
    """Succeeds at the third attempt."""
    if self.request.retries < 2:
        raise self.retry(countdown=0)
    return self.request.retries


@app.task
def now():
    return time.time()


@app.task(acks_late=True)
def late(text):
    return text.upper()


@app.task
def fails():
    raise ValueError("as the case asks")
