using System.Text.Json;
using System.Threading;
using System.Transactions;
using Azure.Core;
using Azure.Messaging.ServiceBus.Administration;

/// <summary>
/// Transactions: sends and settlements that take effect together or not at all.
///
/// Source: service-bus-transactions.
/// </summary>
internal static class Transactions
{
    /// <summary>Messages sent in a transaction are delivered when it is committed, and discarded when it is rolled back.</summary>
    internal static async Task Sends(Bus bus)
    {
        var sender = bus.Sender("orders");
        await Within(true, async () =>
        {
            await sender.SendMessageAsync(new("a"));
            await sender.SendMessagesAsync(Texts("b", "c"));
            await bus.Counts("orders", ("active", 0));
        });
        await Within(false, () => sender.SendMessageAsync(new("never")));
        var receiver = bus.Receiver("orders");
        var messages = await receiver.Receive(3);
        Equal("bodies", messages.Texts(), new[] { "a", "b", "c" });
        await receiver.Complete(messages);
        await receiver.ReceivesNothing();
    }

    /// <summary>Settlements take effect when the transaction is committed.</summary>
    internal static async Task Settles(Bus bus)
    {
        await bus.Send("orders", Texts("done", "bad", "again"));
        var receiver = bus.Receiver("orders");
        var messages = await receiver.Receive(3);
        await Within(true, async () =>
        {
            await receiver.CompleteMessageAsync(messages[0]);
            await receiver.DeadLetterMessageAsync(messages[1]);
            await receiver.AbandonMessageAsync(messages[2]);
            await bus.Counts("orders", ("active", 3), ("locked", 3), ("dead_letter", 0));
        });
        await bus.Counts("orders", ("active", 1), ("locked", 0), ("dead_letter", 1));
        await Sessions.Next(receiver, "again", 1);
    }

    /// <summary>After a rollback a message stays locked: no other receiver gets it, and its lock can be renewed.</summary>
    internal static async Task RollsBack(Bus bus)
    {
        await bus.Send("orders", new Message("kept"));
        var receiver = bus.Receiver("orders");
        var message = await receiver.One();
        await Within(false, () => receiver.CompleteMessageAsync(message));
        await bus.Counts("orders", ("active", 1), ("locked", 1));
        await receiver.RenewMessageLockAsync(message);
        FreshLock(message.LockedUntil);
        await bus.Advance(61);
        await Sessions.Next(receiver, "kept", 1);
    }

    /// <summary>A message scheduled in a transaction is scheduled when the transaction is committed.</summary>
    internal static async Task Schedules(Bus bus)
    {
        var sender = bus.Sender("orders");
        await Within(true, async () =>
        {
            await sender.ScheduleMessageAsync(new("later"), Later(60));
            await bus.Counts("orders", ("scheduled", 0));
        });
        await bus.Counts("orders", ("scheduled", 1));
        await Within(false, () => sender.ScheduleMessageAsync(new("never"), Later(60)));
        await bus.Advance(61);
        var receiver = bus.Receiver("orders");
        await Sessions.Next(receiver, "later");
        await receiver.ReceivesNothing();
    }

    /// <summary>A message is completed in one entity, and a reply is sent to another via that entity.</summary>
    internal static async Task AcrossEntities(Bus bus)
    {
        await bus.Send("orders", Texts("first", "second"));
        await using var across = bus.AcrossEntities();
        // The first client's entity is the via entity of the others.
        var receiver = across.Receiver("orders");
        var messages = await receiver.Receive(2);
        var sender = across.Sender("limited");
        foreach (var message in messages)
        {
            await Within(message.Text() == "second", async () =>
            {
                await receiver.CompleteMessageAsync(message);
                await sender.SendMessageAsync(new($"answer to {message.Text()}"));
                await bus.Counts("limited", ("active", 0));
            });
        }
        await bus.Counts("orders", ("active", 1), ("locked", 1));
        await Sessions.Next(bus.Receiver("limited"), "answer to second");
    }

    /// <summary>Works in a transaction, and commits it or rolls it back.</summary>
    internal static async Task Within(bool commits, Func<Task> work)
    {
        using var scope = new TransactionScope(TransactionScopeAsyncFlowOption.Enabled);
        await work();
        if (commits)
        {
            scope.Complete();
        }
    }
}

/// <summary>
/// Authorization: clients with a token of an identity provider.
///
/// Source: service-bus-authentication-and-authorization. The namespaces of the cases accept tokens without a signature.
/// </summary>
internal static class Connection
{
    /// <summary>A client with a credential sends, receives and settles; it supports only TLS.</summary>
    internal static async Task TokenCredential(Bus bus)
    {
        await using var client = bus.WithCredential(new Credential(TimeSpan.FromHours(1)));
        await client.Send("orders", new Message("by token"));
        await Sessions.Next(client.Receiver("orders"), "by token");
        await bus.Counts("orders", ("active", 0), ("locked", 0));
    }

    /// <summary>A token that has expired is refused.</summary>
    internal static async Task ExpiredToken(Bus bus)
    {
        await using var client = bus.WithCredential(new Credential(TimeSpan.FromHours(-1)));
        await Fails<UnauthorizedAccessException>(client.Send("orders", new Message("too late")));
    }

    /// <summary>A token with this lifetime; the SDK does not notice that a token has expired.</summary>
    private sealed class Credential : TokenCredential
    {
        private readonly DateTimeOffset expiry;

        internal Credential(TimeSpan lifetime) => expiry = DateTimeOffset.UtcNow + lifetime;

        public override AccessToken GetToken(TokenRequestContext context, CancellationToken cancellation)
        {
            var claims = new { aud = "https://servicebus.azure.net", sub = "a case", exp = expiry.ToUnixTimeSeconds() };
            return new AccessToken($"{Part(new { alg = "none", typ = "JWT" })}.{Part(claims)}.", Later(3600));
        }

        public override ValueTask<AccessToken> GetTokenAsync(TokenRequestContext context, CancellationToken cancellation) =>
            new ValueTask<AccessToken>(GetToken(context, cancellation));

        private static string Part(object values) => System.Buffers.Text.Base64Url.EncodeToString(JsonSerializer.SerializeToUtf8Bytes(values));
    }
}

/// <summary>
/// Observed behaviour of the service, by the numbers of tests/conformance/OBSERVED.md.
///
/// Source: spec/observed.md.
/// </summary>
internal static class Observed
{
    /// <summary>A date in a rule keeps all seven digits of its second, as a parameter and as a property (46).</summary>
    internal static async Task Dates(Bus bus)
    {
        var at = new DateTime(2021, 7, 5, 11, 12, 13, DateTimeKind.Utc).AddTicks(1234567);
        var property = new CorrelationRuleFilter { ApplicationProperties = { ["at"] = at } };
        var parameter = new SqlRuleFilter("at = @at") { Parameters = { ["@at"] = at } };
        var admin = bus.Administration();
        await admin.CreateRuleAsync("prices", "all", new CreateRuleOptions("property", property));
        await admin.CreateRuleAsync("prices", "all", new CreateRuleOptions("parameter", parameter));
        True("the property is kept", (await admin.GetRuleAsync("prices", "all", "property")).Value.Filter.Equals(property));
        True("the parameter is kept", (await admin.GetRuleAsync("prices", "all", "parameter")).Value.Filter.Equals(parameter));
    }

    /// <summary>A rule that exists is named as over HTTP (19).</summary>
    internal static async Task RuleThatExists(Bus bus)
    {
        var adding = bus.Client.CreateRuleManager("prices", "all").CreateRuleAsync("$Default", new TrueRuleFilter());
        await Fails<ServiceBusException>(adding, ":Topic:prices|all|$Default' already exists.");
    }

    /// <summary>An entity that a client sends to via another one cannot be received from on the same connection (43).</summary>
    internal static async Task ReceivedVia(Bus bus)
    {
        await using var across = bus.AcrossEntities();
        await across.Sender("limited").SendMessageAsync(new("a"));
        await across.Sender("orders").SendMessageAsync(new("b"));
        await Fails<InvalidOperationException>(across.Receiver("orders").TryReceive());
        await bus.Counts("orders", ("active", 1), ("locked", 0));
    }

    /// <summary>A settlement in a transaction of another partition is rejected, and releases its message (42).</summary>
    internal static async Task OtherPartition(Bus bus)
    {
        await bus.Send("partitioned", new("1") { PartitionKey = "one" }, new("2") { PartitionKey = "two" });
        var receiver = bus.Receiver("partitioned");
        var messages = await receiver.Receive(2);
        await Transactions.Within(true, async () =>
        {
            await receiver.CompleteMessageAsync(messages[0]);
            await Fails<InvalidOperationException>(receiver.CompleteMessageAsync(messages[1]));
        });
        await bus.Counts("partitioned", ("active", 1), ("locked", 0));
        await Sessions.Next(receiver, messages[1].Text(), 1);
    }

    /// <summary>A basic namespace has no transactions (65).</summary>
    internal static Task NoTransactions(Bus bus)
    {
        var sending = Transactions.Within(true, () => bus.Sender("orders").SendMessageAsync(new("never")));
        return Fails<InvalidOperationException>(sending, "Transaction is unsupported because the namespace");
    }
}
