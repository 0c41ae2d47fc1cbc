/// <summary>Expiry, under both settings of D1: when the message expires, or when a receiver is active.</summary>
internal static class Expiry
{
    private const string Expired = "TTLExpiredException";

    /// <summary>An expired message is dead-lettered at once, or counted and peeked until a receiver attaches.</summary>
    internal static async Task WithoutReceiver(Bus bus)
    {
        await bus.Send("expiring", ShortLived("old"), new("young"));
        await bus.Advance(31);
        await bus.Counts("expiring", ("active", bus.IsEager ? 1 : 2), ("dead_letter", bus.IsEager ? 1 : 0));
        var receiver = bus.Receiver("expiring");
        Equal("bodies peeked", (await receiver.Peek()).Texts(), bus.IsEager ? new[] { "young" } : new[] { "old", "young" });
        var message = await receiver.One();
        Equal("body of what is left", message.Text(), "young");
        await receiver.Complete(message);
        await bus.Counts("expiring", ("active", 0), ("dead_letter", 1));
        await IsDead(bus, "old", 0);
    }

    /// <summary>If the queue does not dead-letter on expiration, an expired message is removed.</summary>
    internal static async Task Dropped(Bus bus)
    {
        await bus.Send("orders", ShortLived("old"));
        await bus.Advance(31);
        await bus.Counts("orders", ("active", bus.IsEager ? 0 : 1), ("dead_letter", 0));
        await bus.Receiver("orders").ReceivesNothing();
        await bus.Counts("orders", ("active", 0), ("dead_letter", 0));
    }

    /// <summary>A locked message can be completed after it has expired.</summary>
    internal static async Task CompletedUnderLock(Bus bus)
    {
        await bus.Send("expiring", ShortLived("old"));
        var receiver = bus.Receiver("expiring");
        var message = await receiver.One();
        await bus.Advance(31);
        await receiver.Complete(message);
        await bus.Counts("expiring", ("active", 0), ("dead_letter", 0));
    }

    /// <summary>A message that has expired when it is abandoned is removed at once, under both settings.</summary>
    internal static async Task AbandonedAfterExpiry(Bus bus)
    {
        await bus.Send("expiring", ShortLived("old"));
        var receiver = bus.Receiver("expiring");
        var message = await receiver.One();
        await bus.Advance(31);
        await receiver.AbandonMessageAsync(message);
        await IsDead(bus, "old", 1);
    }

    /// <summary>A message that has expired when its lock expires is also removed at once.</summary>
    internal static async Task LockEndsAfterExpiry(Bus bus)
    {
        await bus.Send("expiring", ShortLived("old"));
        await bus.Receiver("expiring").One();
        await bus.Advance(61);
        await IsDead(bus, "old", 1);
    }

    /// <summary>The queue's time to live applies to messages that have none, and is the maximum for others.</summary>
    internal static async Task ByDefaultTimeToLive(Bus bus)
    {
        await bus.Send("fleeting", new("none"), new("long") { TimeToLive = TimeSpan.FromDays(1) });
        await using (var receiver = bus.Receiver("fleeting"))
        {
            foreach (var message in await receiver.Receive(2))
            {
                Equal("time to live", message.TimeToLive, TimeSpan.FromMinutes(5));
                await receiver.AbandonMessageAsync(message);
            }
        }
        await bus.Advance(301);
        await bus.Receiver("fleeting").ReceivesNothing();
        var deadLetters = bus.DeadLetters("fleeting");
        var dead = await deadLetters.Receive(2);
        Equal("reasons", dead.Select(each => each.DeadLetterReason), new[] { Expired, Expired });
        await deadLetters.Complete(dead);
    }

    /// <summary>A message that expires after half a lock.</summary>
    internal static Message ShortLived(string body) => new(body) { TimeToLive = TimeSpan.FromSeconds(30) };

    /// <summary>Receives the only dead-lettered message of the queue, with the reason of an expired one.</summary>
    private static async Task IsDead(Bus bus, string body, int deliveries)
    {
        var receiver = bus.DeadLetters("expiring");
        var dead = await receiver.One();
        Equal(
            "dead letter",
            (dead.Text(), dead.DeadLetterReason, dead.DeadLetterErrorDescription, dead.Deliveries()),
            (body, Expired, "The message expired and was dead lettered.", deliveries));
        await receiver.Complete(dead);
    }
}
