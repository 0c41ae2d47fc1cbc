"""Runs the cases of kombu, then those of Celery with one worker; exits with 1 if a case has failed."""

import sys
import traceback

import celery_cases
import kombu_cases


def run(cases):
    failed = False
    for case in cases:
        name = f"{case.__module__.removesuffix('_cases')}.{case.__name__}"
        try:
            case()
            print("passed", name)
        except Exception:
            failed = True
            print("failed", name)
            traceback.print_exc(file=sys.stdout)
    return failed


def main():
    failed = run(kombu_cases.CASES)
    with celery_cases.worker():
        failed = run(celery_cases.CASES) or failed
        # So that the worker's log is shown.
        assert not failed, "cases failed, for the reasons above"


main()
