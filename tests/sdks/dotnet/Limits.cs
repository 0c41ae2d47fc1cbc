/// <summary>
/// Limits: a message that is too large, a queue that is full, a batch that is rejected as a whole.
///
/// Source: service-bus-quotas. The queue <c>tiny</c> holds a mebibyte, five messages of 200,000 bytes.
/// </summary>
internal static class Limits
{
    /// <summary>A message over the link's limit is rejected; the sender accepts the next one.</summary>
    internal static async Task TooLarge(Bus bus)
    {
        var sender = bus.Sender("orders");
        await sender.SendMessageAsync(new("small"));
        await Fails(Reason.MessageSizeExceeded, sender.SendMessageAsync(Sized(300_000)));
        await sender.SendMessageAsync(new("small"));
        await bus.Counts("orders", ("active", 2));
    }

    /// <summary>A full queue rejects messages that do not fit until there is space again.</summary>
    internal static async Task Full(Bus bus)
    {
        await bus.Send("tiny", Enumerable.Repeat(Sized(200_000), 5).ToArray());
        var sender = bus.Sender("tiny");
        await Fails(Reason.QuotaExceeded, sender.SendMessageAsync(Sized(200_000)));
        await sender.SendMessageAsync(new("small enough"));
        var receiver = bus.Receiver("tiny");
        await receiver.Complete(await receiver.One());
        await sender.SendMessageAsync(Sized(200_000));
        await bus.Counts("tiny", ("active", 6));
    }

    /// <summary>Dead-lettered messages take space, too.</summary>
    internal static async Task FullOfDeadLetters(Bus bus)
    {
        var sender = bus.Sender("tiny");
        var receiver = bus.Receiver("tiny");
        for (var sent = 0; sent < 5; sent++)
        {
            await sender.SendMessageAsync(Sized(200_000));
            await receiver.DeadLetterMessageAsync(await receiver.One());
        }
        await Fails(Reason.QuotaExceeded, sender.SendMessageAsync(Sized(200_000)));
        await bus.Counts("tiny", ("active", 0), ("dead_letter", 5));
    }

    /// <summary>A batch of which only a part would fit is rejected as a whole.</summary>
    internal static async Task BatchIsAllOrNothing(Bus bus)
    {
        await bus.Send("tiny", Enumerable.Repeat(Sized(200_000), 4).Append(Sized(100_000)).ToArray());
        await Fails(Reason.QuotaExceeded, bus.SendTogether("tiny", Sized(100_000), Sized(100_000)));
        await bus.Counts("tiny", ("active", 5));
        await bus.SendTogether("tiny", Sized(100_000));
        await bus.Counts("tiny", ("active", 6));
    }

    /// <summary>A batch accepts messages up to the link's limit, and can be sent.</summary>
    internal static async Task BatchFillsUp(Bus bus)
    {
        var sender = bus.Sender("orders");
        using var batch = await sender.CreateMessageBatchAsync();
        Equal("limit", batch.MaxSizeInBytes, 262_144);
        while (batch.TryAddMessage(Sized(50_000)))
        {
        }
        Equal("messages of 50,000 bytes in a batch", batch.Count, 5);
        await sender.SendMessagesAsync(batch);
        await bus.Counts("orders", ("active", 5));
    }
}

/// <summary>
/// The premium tier: messages of any size that their queue allows.
///
/// Source: service-bus-premium-messaging. The queue <c>large</c> allows ten mebibytes, the others one.
/// </summary>
internal static class Premium
{
    /// <summary>A message of 5 MB arrives unchanged if the queue allows it.</summary>
    internal static async Task LargeMessage(Bus bus)
    {
        var sent = Enumerable.Range(0, 5_000_000).Select(each => (byte)(each * 7L % 251)).ToArray();
        await bus.Send("large", new Message(sent));
        var receiver = bus.Receiver("large");
        var message = await receiver.One();
        True("the body is what was sent", message.Body.ToMemory().Span.SequenceEqual(sent));
        await receiver.Complete(message);
        await bus.Counts("large", ("active", 0));
    }

    /// <summary>Other queues have the tier's default limit of a mebibyte.</summary>
    internal static async Task TooLarge(Bus bus)
    {
        var sender = bus.Sender("orders");
        await sender.SendMessageAsync(Sized(1_000_000));
        await Fails(Reason.MessageSizeExceeded, sender.SendMessageAsync(Sized(1_100_000)));
        await sender.SendMessageAsync(new("small"));
        await bus.Counts("orders", ("active", 2));
    }

    /// <summary>A batch has a mebibyte at most, also where a single message may have more.</summary>
    internal static async Task Batch(Bus bus)
    {
        using var batch = await bus.Sender("large").CreateMessageBatchAsync();
        Equal("limit of a batch", batch.MaxSizeInBytes, 1_048_576);
        var half = Sized(500_000);
        var text = "received a batch message with no data in it. Detach origin: Publisher.";
        // The type depends on whether the SDK waits for the outcome when the link ends.
        await Fails<Exception>(bus.SendTogether("large", half, half, half), text);
        await bus.Counts("large", ("active", 0));
        await bus.SendTogether("large", half, half);
        await bus.Counts("large", ("active", 2));
    }
}

/// <summary>
/// Partitioned queues: sequence numbers have a partition in their top 16 bits, and work as any other (D18).
///
/// Source: service-bus-partitioning.
/// </summary>
internal static class Partitions
{
    private const string Queue = "partitioned";

    /// <summary>Messages with one partition key are in one partition, in the order sent, and keep the key.</summary>
    internal static async Task Keys(Bus bus)
    {
        await bus.Send(Queue, Keyed("a", "eu"), Keyed("b", "eu"), Keyed("c", "eu"));
        await bus.Send(Queue, Texts(Numbered(0, 20)));
        var receiver = bus.Receiver(Queue);
        var messages = await receiver.Receive(23);
        var ofEu = messages.Where(each => each.PartitionKey == "eu").ToArray();
        Equal("bodies of one key", ofEu.Texts(), new[] { "a", "b", "c" });
        Equal("partitions of one key", ofEu.Select(Partition).Distinct().Count(), 1);
        True("there are several partitions", messages.Select(Partition).Distinct().Count() > 1);
        await receiver.Complete(messages);
    }

    /// <summary>A sequence number with a partition cancels a scheduled message, receives a deferred one, and starts a peek.</summary>
    internal static async Task Numbers(Bus bus)
    {
        // Of eight keys most are not in partition 0.
        var sent = Numbered(0, 8).Select(each => Keyed(each, each)).ToArray();
        await bus.Send(Queue, sent);
        var receiver = bus.Receiver(Queue);
        await receiver.Defer(8);
        var peeked = await receiver.Peek();
        True("some are in a partition", peeked.Any(each => Partition(each) > 0));
        foreach (var message in peeked)
        {
            Equal("peeked from its number", (await receiver.Peek(1, message.SequenceNumber)).Texts(), new[] { message.Text() });
            var deferred = await receiver.Deferred(message.SequenceNumber);
            Equal("received by its number", deferred.Text(), message.Text());
            await receiver.Complete(deferred);
        }
        var sender = bus.Sender(Queue);
        foreach (var message in sent)
        {
            await sender.CancelScheduledMessageAsync(await sender.ScheduleMessageAsync(message, Later(60)));
        }
        await bus.Counts(Queue, ("active", 0), ("deferred", 0), ("scheduled", 0));
    }

    /// <summary>All messages of a batch go to one partition: a batch with two keys is rejected as a whole.</summary>
    internal static async Task BatchOfOneKey(Bus bus)
    {
        await Fails<InvalidOperationException>(bus.SendTogether(Queue, Keyed("a", "eu"), Keyed("b", "us")));
        await bus.SendTogether(Queue, Keyed("a", "eu"), Keyed("b", "eu"));
        await bus.Counts(Queue, ("active", 2));
    }

    private static Message Keyed(string body, string key) => new(body) { PartitionKey = key };

    /// <summary>The top 16 bits of its sequence number.</summary>
    private static long Partition(Received message) => message.SequenceNumber >> 48;
}

/// <summary>
/// Auto-delete on idle: a queue that no client uses for five minutes is deleted with its messages.
///
/// Source: the property AutoDeleteOnIdle of queues. The queue <c>idle</c> has it.
/// </summary>
internal static class Idle
{
    /// <summary>After five minutes without use the queue no longer exists, also for an open link.</summary>
    internal static async Task Deleted(Bus bus)
    {
        var sender = bus.Sender("idle");
        await sender.SendMessageAsync(new("left"));
        await bus.Advance(301);
        await IsMissing(sender.SendMessageAsync(new("late")));
        await IsMissing(bus.Receiver("idle").TryReceive());
    }

    /// <summary>Sends, peeks and scheduled messages each keep the queue for five more minutes.</summary>
    internal static async Task Used(Bus bus)
    {
        var sender = bus.Sender("idle");
        await bus.Advance(240);
        await sender.SendMessageAsync(new("kept"));
        await bus.Advance(240);
        await bus.Receiver("idle").Peek(1);
        await bus.Advance(240);
        await sender.ScheduleMessageAsync(new("later"), Later(600));
        await bus.Advance(601);
        await bus.Advance(240);
        var receiver = bus.Receiver("idle");
        await receiver.Complete(await receiver.Receive(2));
        await receiver.ReceivesNothing();
    }
}
