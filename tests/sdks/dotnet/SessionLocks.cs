using System.Text;

/// <summary>
/// Session locks: renewed in time, by the application or the SDK, or lost with the locks of received messages.
///
/// Source: message-sessions, and D17 for a changed queue. The locks of <c>quick-carts</c> last twenty seconds: a processor renews
/// a lock that has ten seconds left, by its own clock.
/// </summary>
internal static class SessionLocks
{
    /// <summary>Renewing a session's lock in time also extends the locks of its messages.</summary>
    internal static async Task Renews(Bus bus)
    {
        await bus.Send("carts", Cart("1", "slow"));
        var receiver = await bus.Session("carts", "1");
        var message = await receiver.One();
        for (var renewal = 0; renewal < 2; renewal++)
        {
            await bus.Advance(40);
            await receiver.RenewSessionLockAsync();
            FreshLock(receiver.SessionLockedUntil);
        }
        await bus.Advance(40);
        await receiver.Complete(message);
        await bus.Counts("carts", ("active", 0), ("locked", 0));
    }

    /// <summary>Settling after the lock has expired raises the SDK's error, and the messages are redelivered and counted.</summary>
    internal static async Task LosesLock(Bus bus)
    {
        await bus.Send("carts", Cart("1", "late"), Cart("1", "later"));
        var settlements = new Func<Receiver, Received, Task>[]
        {
            (receiver, each) => receiver.CompleteMessageAsync(each),
            (receiver, each) => receiver.AbandonMessageAsync(each),
            (receiver, each) => receiver.DeadLetterMessageAsync(each),
        };
        for (var number = 0; number < settlements.Length; number++)
        {
            var receiver = await bus.Session("carts", "1");
            var messages = await receiver.Receive(2);
            Equal("deliveries", messages.Select(each => each.Deliveries()), new[] { number, number });
            await bus.Advance(61);
            foreach (var message in messages)
            {
                await IsLost(settlements[number](receiver, message));
            }
        }
        await bus.Counts("carts", ("active", 2), ("locked", 0));
    }

    /// <summary>Renewing after the lock has expired raises the same error, and so does a receive then.</summary>
    internal static async Task LosesLockOnRenewal(Bus bus)
    {
        var receiver = await bus.Session("carts", "1");
        await bus.Advance(61);
        await IsLost(receiver.RenewSessionLockAsync());
        await Sessions.IsLost(receiver, "has expired");
    }

    /// <summary>A waiting receiver gets a session whose lock expires, although its receiver is still attached.</summary>
    internal static async Task PassesOn(Bus bus)
    {
        await bus.Send("carts", Cart("1", "stuck"));
        await (await bus.Session("carts", "1")).One();
        var opening = bus.NextSession("carts");
        await bus.Advance(61);
        await Sessions.Next(await opening, "stuck", 1);
    }

    /// <summary>Expired locks count as deliveries, as abandons do, until the message is dead-lettered.</summary>
    internal static async Task ExpiresToTheLimit(Bus bus)
    {
        await bus.Send("limited-carts", Cart("1", "forgotten"), Cart("1", "unseen"));
        for (var deliveries = 0; deliveries < 2; deliveries++)
        {
            var message = await (await bus.Session("limited-carts", "1")).One();
            Equal("delivered", (message.Text(), message.Deliveries()), ("forgotten", deliveries));
            await bus.Advance(61);
        }
        var deadLetters = bus.DeadLetters("limited-carts");
        var dead = await deadLetters.One();
        Equal("dead letter", (dead.DeadLetterReason, dead.Deliveries()), ("MaxDeliveryCountExceeded", 2));
        await deadLetters.Complete(dead);
        await Sessions.Next(await bus.Session("limited-carts", "1"), "unseen");
    }

    /// <summary>A changed queue loses the locks of its sessions (D17).</summary>
    internal static async Task Changed(Bus bus)
    {
        await bus.Send("carts", Cart("1", "held"));
        var holder = await bus.Session("carts", "1");
        var held = await holder.One();
        await bus.Configure("carts", new { MaxDeliveryCount = 5 });
        // The response arrives after the detach, so that the SDK knows of the detach when it settles.
        await IsLost(holder.RenewSessionLockAsync());
        await IsLost(holder.CompleteMessageAsync(held));
        await Sessions.Next(await bus.NextSession("carts"), "held", 1);
    }

    /// <summary>A processor renews a session's lock automatically, beyond the lock's first duration.</summary>
    internal static async Task AutoRenewed(Bus bus)
    {
        await bus.Send("quick-carts", Cart("1", "slow"));
        var handled = new TaskCompletionSource();
        await using var processor = bus.Client.CreateSessionProcessor("quick-carts");
        processor.ProcessMessageAsync += async each =>
        {
            var lockedUntil = each.SessionLockedUntil;
            await Until("a renewal", () => each.SessionLockedUntil > lockedUntil);
            await bus.Advance(12);
            handled.SetResult();
        };
        processor.ProcessErrorAsync += each =>
        {
            handled.TrySetException(each.Exception);
            return Task.CompletedTask;
        };
        await processor.StartProcessingAsync();
        await handled.Task.WaitAsync(Timeout);
        await bus.Counts("quick-carts", ("active", 0), ("locked", 0));
    }

    /// <summary>The error of an operation after the session's lock has expired.</summary>
    internal static Task IsLost(Task operation) => Fails(Reason.SessionLockLost, operation);
}

/// <summary>
/// Session states, which outlive messages and receivers.
///
/// Source: message-sessions.
/// </summary>
internal static class SessionState
{
    /// <summary>A session has no state until its receiver sets one.</summary>
    internal static async Task SetAndRead(Bus bus)
    {
        var receiver = await bus.Session("carts", "1");
        await Has(receiver, null);
        foreach (var state in new[] { new byte[] { 0, 255, 1 }, Bytes("{\"step\":2}"), Bytes("half done") })
        {
            await Set(receiver, state);
            await Has(receiver, state);
        }
        await Has(await bus.Session("carts", "2"), null);
    }

    /// <summary>A state set to null, or to an empty one, is read as null.</summary>
    internal static async Task Cleared(Bus bus)
    {
        var receiver = await bus.Session("carts", "1");
        foreach (var cleared in new[] { null, BinaryData.FromBytes(Array.Empty<byte>()) })
        {
            await Set(receiver, Bytes("half done"));
            await receiver.SetSessionStateAsync(cleared);
            await Has(receiver, null);
        }
    }

    /// <summary>A state outlives the session's messages, its receivers and their locks.</summary>
    internal static async Task Outlives(Bus bus)
    {
        await bus.Send("carts", Cart("1", "a"));
        await using (var first = await bus.Session("carts", "1"))
        {
            var message = await first.One();
            await Set(first, Bytes("half done"));
            await first.Complete(message);
        }
        var second = await bus.Session("carts", "1");
        await Has(second, Bytes("half done"));
        await bus.Advance(61);
        await SessionLocks.IsLost(second.GetSessionStateAsync());
        await Has(await bus.Session("carts", "1"), Bytes("half done"));
    }

    /// <summary>Sessions of a subscription have separate states.</summary>
    internal static async Task Subscription(Bus bus)
    {
        var receiver = await bus.Client.AcceptSessionAsync("steps", "by-cart", "1");
        await Set(receiver, Bytes("half done"));
        await Has(receiver, Bytes("half done"));
        await Has(await bus.Session("carts", "1"), null);
    }

    /// <summary>A state has at most 256 KiB; a larger one is rejected and changes nothing.</summary>
    internal static async Task TooLarge(Bus bus)
    {
        var receiver = await bus.Session("carts", "1");
        await Set(receiver, new byte[256 * 1024]);
        await Fails<ServiceBusException>(Set(receiver, new byte[(256 * 1024) + 1]), "262144");
        await Has(receiver, new byte[256 * 1024]);
    }

    private static byte[] Bytes(string text) => Encoding.UTF8.GetBytes(text);

    private static Task Set(ServiceBusSessionReceiver receiver, byte[] state) =>
        receiver.SetSessionStateAsync(BinaryData.FromBytes(state));

    private static async Task Has(ServiceBusSessionReceiver receiver, byte[] expected) =>
        Equal("state", (await receiver.GetSessionStateAsync())?.ToArray(), expected);
}
