"""Manages a namespace with `az`, pointed at an emulator by what `--print-env az` prints."""

import json
import subprocess
import sys

AZ = [sys.executable, "-m", "azure.cli"]
OWN = ["--resource-group", "rg", "--namespace-name", "sbemulatorns"]


def az(*arguments, fails=None):
    ended = subprocess.run([*AZ, *arguments, "--output", "json"], capture_output=True, text=True, check=False)
    if fails:
        assert ended.returncode != 0 and fails in ended.stderr, f"{arguments}: {ended}"
        return None
    assert ended.returncode == 0, f"{arguments}: {ended.stdout}{ended.stderr}"
    return json.loads(ended.stdout) if ended.stdout.strip() else None


def main(endpoint):
    az("cloud", "register", "-n", "sbemu", "--endpoint-resource-manager", endpoint)
    az("cloud", "set", "-n", "sbemu")
    az("login", "--service-principal", "-u", "any", "-p", "any", "--tenant", "any")
    queue = ["--name", "orders", *OWN]
    made = az("servicebus", "queue", "create", *queue, "--lock-duration", "PT30S", "--max-delivery-count", "3")
    assert (made["lockDuration"], made["maxDeliveryCount"]) == ("PT30S", 3), made
    updated = az("servicebus", "queue", "update", *queue, "--max-delivery-count", "4")
    assert (updated["lockDuration"], updated["maxDeliveryCount"]) == ("PT30S", 4), updated
    names = az("servicebus", "queue", "list", *OWN, "--query", "[].name")
    assert names == ["orders", "queue.1"], names
    counts = az("servicebus", "queue", "show", "--name", "queue.1", *OWN, "--query", "countDetails")
    assert counts["activeMessageCount"] == 2, counts
    topic = ["--topic-name", "events", *OWN]
    az("servicebus", "topic", "create", "--name", "events", *OWN)
    az("servicebus", "topic", "subscription", "create", "--name", "billing", *topic)
    rule = ["--subscription-name", "billing", *topic, "--name", "large", "--filter-sql-expression", "amount > 10"]
    az("servicebus", "topic", "subscription", "rule", "create", *rule)
    rules = ["servicebus", "topic", "subscription", "rule", "list", "--subscription-name", "billing", *topic]
    assert az(*rules, "--query", "[].name") == ["large"]
    details = az("servicebus", "topic", "subscription", "show", "--name", "billing", *topic, "--query", "countDetails")
    assert details["activeMessageCount"] == 0, details
    keys = az("servicebus", "namespace", "authorization-rule", "keys", "list", "--name", "RootManageSharedAccessKey", *OWN)
    assert keys["keyName"] == "RootManageSharedAccessKey", keys
    lock = ["--resource-group", "rg", "--resource-type", "Microsoft.ServiceBus/namespaces", "--resource", "sbemulatorns"]
    az("lock", "create", "--name", "keep", "--lock-type", "CanNotDelete", *lock)
    az("servicebus", "queue", "delete", *queue, fails="ScopeLocked")
    az("lock", "delete", "--name", "keep", *lock)
    az("servicebus", "queue", "delete", *queue)
    az("servicebus", "topic", "delete", "--name", "events", *OWN)
    az("servicebus", "queue", "show", *queue, fails="MessagingGatewayNotFoundStatusCode")


main(*sys.argv[1:])
