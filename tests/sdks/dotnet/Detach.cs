using System.Diagnostics;

/// <summary>Receivers that close with a message locked, under both settings of D2.</summary>
internal static class Detach
{
    /// <summary>A receiver is closed with a message locked; the lock is kept, or released at once.</summary>
    internal static async Task Closed(Bus bus)
    {
        var held = await ReceiveAndClose(bus);
        var receiver = bus.Receiver("orders");
        if (bus.KeepsLocksOnDetach)
        {
            await receiver.ReceivesNothing();
            await bus.Counts("orders", ("active", 1), ("locked", 1));
            // The lock is kept: its token still renews it.
            await receiver.RenewMessageLockAsync(held);
        }
        else
        {
            var again = await receiver.One();
            Equal("deliveries", again.Deliveries(), 0);
            await Fails(Reason.MessageLockLost, receiver.RenewMessageLockAsync(held));
            await receiver.AbandonMessageAsync(again);
        }
        await Returns(bus);
    }

    /// <summary>After its receiver is closed, a message is settled by its lock token while the lock is valid.</summary>
    internal static async Task SettledByToken(Bus bus)
    {
        var held = await ReceiveAndClose(bus);
        var receiver = bus.Receiver("orders");
        if (!bus.KeepsLocksOnDetach)
        {
            await Fails(Reason.MessageLockLost, receiver.CompleteMessageAsync(held));
            held = await receiver.One();
            Equal("deliveries", held.Deliveries(), 0);
        }
        await receiver.Complete(held);
        await bus.Counts("orders", ("active", 0), ("locked", 0));
    }

    /// <summary>A process is killed with a message locked, which ends its connection.</summary>
    internal static async Task Dropped(Bus bus)
    {
        await bus.Send("orders", new Message("held"));
        var start = new ProcessStartInfo(Environment.ProcessPath, "orders") { RedirectStandardInput = true };
        bus.Variables.ToList().ForEach(each => start.Environment[each.Key] = each.Value);
        using var dying = Process.Start(start);
        await dying.WaitForExitAsync().WaitAsync(TimeSpan.FromMinutes(2));
        await bus.Counts("orders", ("active", 1), ("locked", bus.KeepsLocksOnDetach ? 1 : 0));
        if (!bus.KeepsLocksOnDetach)
        {
            var receiver = bus.Receiver("orders");
            var message = await receiver.One();
            Equal("deliveries", message.Deliveries(), 0);
            await receiver.AbandonMessageAsync(message);
        }
        await Returns(bus);
    }

    /// <summary>Receives one message and ends the process without notifying the broker.</summary>
    internal static async Task Die(Bus bus, string queue)
    {
        await bus.Receiver(queue).One();
        Environment.Exit(0);
    }

    private static async Task<Received> ReceiveAndClose(Bus bus)
    {
        await bus.Send("orders", new Message("held"));
        await using var receiver = bus.Receiver("orders");
        return await receiver.One();
    }

    /// <summary>After a minute the message is available again, counted once, by its expired lock or by the abandon.</summary>
    private static async Task Returns(Bus bus)
    {
        await bus.Advance(61);
        var receiver = bus.Receiver("orders");
        var message = await receiver.One();
        Equal("deliveries", message.Deliveries(), 1);
        await receiver.Complete(message);
        await bus.Counts("orders", ("active", 0), ("dead_letter", 0));
    }
}
