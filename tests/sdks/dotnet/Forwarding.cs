/// <summary>
/// Auto-forwarding of messages and dead-lettered messages to another queue, at most four times (D3).
///
/// Source: service-bus-auto-forwarding, service-bus-dead-letter-queues. <c>inbox</c> forwards to <c>orders</c>, <c>hop1</c> over
/// the others to <c>hop6</c>, and <c>complaints</c> forwards its dead letters to <c>orders</c>.
/// </summary>
internal static class Forwarding
{
    /// <summary>A message is forwarded unchanged from queue to queue, with a new sequence number in each.</summary>
    internal static async Task Chain(Bus bus)
    {
        await bus.Send("orders", new Message("direct"));
        var sent = new Message("over") { MessageId = "o-17", Subject = "placed", ApplicationProperties = { ["total"] = 3 } };
        await bus.Send("inbox", sent);
        await bus.Counts("inbox", ("active", 0), ("transfer", 0));
        var receiver = bus.Receiver("orders");
        var messages = await receiver.Receive(2);
        var over = messages[1];
        Equal("message", (over.Text(), over.MessageId, over.Subject, over.Deliveries()), ("over", "o-17", "placed", 0));
        Equal("application properties", over.ApplicationProperties, sent.ApplicationProperties);
        Equal("number, and that where it was sent", (over.SequenceNumber, over.EnqueuedSequenceNumber), (2, 1));
        await receiver.Complete(messages);
    }

    /// <summary>A forwarded dead-lettered message keeps its reason and its dead-letter source.</summary>
    internal static async Task DeadLetters(Bus bus)
    {
        await bus.Send("complaints", new Message("bad"));
        var complaints = bus.Receiver("complaints");
        var fresh = await complaints.One();
        Equal("source of a message that is none", fresh.DeadLetterSource, null);
        await complaints.AbandonMessageAsync(fresh);
        var receiver = bus.Receiver("orders");
        var message = await receiver.One();
        var origin = (message.DeadLetterSource, message.DeadLetterReason);
        Equal("origin", origin, ("complaints", "MaxDeliveryCountExceeded"));
        await receiver.Complete(message);
        await bus.Counts("complaints", ("active", 0), ("dead_letter", 0));
    }

    /// <summary>Four forwards are allowed: the fifth fails at its source.</summary>
    internal static async Task Hops(Bus bus)
    {
        await bus.Send("hop2", new Message("four"));
        var receiver = bus.Receiver("hop6");
        var message = await receiver.One();
        Equal("body", message.Text(), "four");
        await receiver.Complete(message);
        await bus.Send("hop1", new Message("five"));
        var description = "The maximum number of allowed hops when forwarding between queues. Value is set to 4.";
        await IsNotForwarded(bus, "hop5", "five", "MaxTransferHopCountExceeded", description);
        await receiver.ReceivesNothing();
    }

    /// <summary>A message whose target does not exist is moved to the transfer dead-letter queue of its source.</summary>
    internal static async Task TargetDeleted(Bus bus)
    {
        await bus.Delete("orders");
        await bus.Send("inbox", new Message("lost"));
        await IsNotForwarded(bus, "inbox", "lost", "MessagingEntityNotFoundException");
    }

    /// <summary>So is a message that its target rejects.</summary>
    internal static async Task TargetDisabled(Bus bus)
    {
        await bus.Configure("orders", new { Status = "SendDisabled" });
        await bus.Send("inbox", new Message("early"));
        await IsNotForwarded(bus, "inbox", "early", "MessagingEntityDisabledException");
    }

    /// <summary>So is a message for which its target has no space.</summary>
    internal static async Task TargetFull(Bus bus)
    {
        var large = new string('x', 200_000);
        await bus.Send("tiny", Texts(Enumerable.Repeat(large, 5).ToArray()));
        await bus.Send("to-tiny", new Message(large));
        await bus.Counts("tiny", ("active", 5));
        await IsNotForwarded(bus, "to-tiny", large, "QuotaExceededException");
    }

    /// <summary>A queue that forwards cannot be received from; its dead-letter queues can.</summary>
    internal static async Task NotReceivedFrom(Bus bus)
    {
        await Fails<InvalidOperationException>(bus.Receiver("inbox").TryReceive());
        await bus.DeadLetters("inbox").ReceivesNothing();
    }

    /// <summary>Receives the only message that a queue could not forward.</summary>
    private static async Task IsNotForwarded(Bus bus, string queue, string body, string reason, string description = null)
    {
        await bus.Counts(queue, ("active", 0), ("dead_letter", 0), ("transfer_dead_letter", 1));
        var receiver = bus.Receiver(queue, SubQueue.TransferDeadLetter);
        var message = await receiver.One();
        Equal("message", (message.Text(), message.DeadLetterReason), (body, reason));
        Equal("description", message.DeadLetterErrorDescription, description ?? message.DeadLetterErrorDescription);
        await receiver.Complete(message);
        await bus.Counts(queue, ("transfer_dead_letter", 0));
    }
}

/// <summary>
/// Entity status: operations that a disabled queue rejects, when a link attaches and when one is attached.
///
/// Source: entity-suspend, and D27 for what is locked.
/// </summary>
internal static class Status
{
    /// <summary>No client may send to a disabled queue or receive from it; its messages are kept.</summary>
    internal static async Task Disabled(Bus bus)
    {
        await bus.Send("orders", new Message("kept"));
        await Set(bus, "Disabled");
        await IsDisabled(bus.Send("orders", new Message("refused")));
        await IsDisabled(bus.Receiver("orders").TryReceive());
        await Set(bus, "Active");
        await Next(bus, "kept");
    }

    /// <summary>Clients can receive from a queue that is disabled for sends.</summary>
    internal static async Task SendDisabled(Bus bus)
    {
        await bus.Send("orders", new Message("kept"));
        await Set(bus, "SendDisabled");
        await IsDisabled(bus.Send("orders", new Message("refused")));
        await Next(bus, "kept");
    }

    /// <summary>Clients can send to a queue that is disabled for receives.</summary>
    internal static async Task ReceiveDisabled(Bus bus)
    {
        await Set(bus, "ReceiveDisabled");
        await bus.Send("orders", new Message("kept"));
        await IsDisabled(bus.Receiver("orders").TryReceive());
        await bus.Counts("orders", ("active", 1), ("locked", 0));
    }

    /// <summary>An open sender is rejected while the queue is disabled, and can send afterwards.</summary>
    internal static async Task OpenSender(Bus bus)
    {
        var sender = bus.Sender("orders");
        await sender.SendMessageAsync(new("before"));
        await Set(bus, "Disabled");
        await IsDisabled(sender.SendMessageAsync(new("meanwhile")));
        await Set(bus, "Active");
        await sender.SendMessageAsync(new("after"));
        await Next(bus, "before");
        await Next(bus, "after");
    }

    /// <summary>An open receiver loses its link, and receives again once the queue is active.</summary>
    internal static async Task OpenReceiver(Bus bus)
    {
        var receiver = bus.Receiver("orders");
        await receiver.ReceivesNothing();
        var lost = receiver.TryReceive();
        await Set(bus, "ReceiveDisabled");
        await bus.Send("orders", new Message("kept"));
        await IsDisabled(receiver.AfterEnd(lost));
        await Set(bus, "Active");
        await receiver.Complete(await receiver.One());
    }

    /// <summary>A lock keeps its expiry time while its queue is disabled (D27), unless it ends with its link (D2).</summary>
    internal static async Task Locked(Bus bus)
    {
        await bus.Send("orders", new Message("held"));
        var receiver = bus.Receiver("orders");
        var held = await receiver.One();
        await Set(bus, "Disabled");
        // The response arrives after the detach, so that the SDK knows of the detach when it settles.
        await IsDisabled(receiver.RenewMessageLockAsync(held));
        await IsDisabled(receiver.CompleteMessageAsync(held));
        await Set(bus, "Active");
        await bus.Counts("orders", ("active", 1), ("locked", bus.KeepsLocksOnDetach ? 1 : 0));
        if (bus.KeepsLocksOnDetach)
        {
            await receiver.Complete(held);
        }
        else
        {
            await Fails(Reason.MessageLockLost, receiver.CompleteMessageAsync(held));
            await Next(bus, "held");
        }
        await bus.Counts("orders", ("active", 0), ("locked", 0));
    }

    private static Task Set(Bus bus, string status) => bus.Configure("orders", new { Status = status });

    /// <summary>Receives and completes the next message.</summary>
    private static async Task Next(Bus bus, string body)
    {
        await using var receiver = bus.Receiver("orders");
        var message = await receiver.One();
        Equal("body", message.Text(), body);
        await receiver.Complete(message);
    }
}
