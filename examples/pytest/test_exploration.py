"""The shop's worker charges each order once, whatever fault its completion has."""

import itertools

import pytest
import shop
from exploration import Run, explore
from test_shop import Bank, send

COMPLETIONS = {"only": ["worker.complete"], "effects": ["lose-lock", "deliver-twice"], "within": 120}


class CarefulBank(Bank):
    """Charges an order once, however often it is called."""

    def charge(self, order: str, total: int) -> None:
        if (order, total) not in self.charged:
            super().charge(order, total)


def work_until_done(run: Run, bank: Bank) -> None:
    """Handles deliveries one after another, each with a new worker, which does not remember earlier ones."""
    send(run, "12")
    while run.counts("orders")["active"]:
        shop.work(run.parties["worker"], bank.charge, deliveries=1)
    assert bank.charged == [("o-17", 12)]


def carefully(run: Run) -> None:
    work_until_done(run, CarefulBank())


def carelessly(run: Run) -> None:
    work_until_done(run, Bank())


def test_an_order_is_charged_once_with_any_fault(servicebus_emulator):
    explore(servicebus_emulator, carefully, ["worker"], **COMPLETIONS)


def test_a_worker_that_remembers_orders_only_in_memory_fails(servicebus_emulator):
    with pytest.raises(pytest.fail.Exception) as found:
        explore(servicebus_emulator, carelessly, ["worker"], **COMPLETIONS)
    report = str(found.value)
    assert "worker's completion of o-17, delivery 1" in report
    assert "timeline of o-17 in orders" in report
    assert '"token": "x1:worker.complete@orders/o-17#1=' in report


def test_a_run_that_fails_without_its_fault_fails_the_exploration(servicebus_emulator):
    runs = itertools.count(1)

    def forgetfully(run: Run) -> None:
        assert next(runs) != 3, "no database"
        carefully(run)

    with pytest.raises(pytest.fail.Exception, match="fails although its fault was not applied"):
        explore(servicebus_emulator, forgetfully, ["worker"], **COMPLETIONS)
