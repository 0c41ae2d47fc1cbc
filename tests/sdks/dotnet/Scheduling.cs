/// <summary>
/// Scheduled messages: scheduled, waiting, active with a new sequence number, or cancelled.
///
/// Source: message-sequencing. The client's clock sets the time, to which the namespace's clock is advanced (D20).
/// </summary>
internal static class Scheduling
{
    /// <summary>A message with a scheduled enqueue time waits until then, visible only to peeks, and gets a new number.</summary>
    internal static async Task Annotated(Bus bus)
    {
        var at = Later(300);
        await bus.Send("orders", new Message("later") { ScheduledEnqueueTime = at });
        await bus.Counts("orders", ("active", 0), ("scheduled", 1));
        var receiver = bus.Receiver("orders");
        await receiver.ReceivesNothing();
        var peeked = (await receiver.Peek())[0];
        Equal("peeked", (peeked.State, peeked.SequenceNumber), (ServiceBusMessageState.Scheduled, 1));
        Close("the scheduled time", peeked.ScheduledEnqueueTime, at);
        await bus.Advance(240);
        await receiver.ReceivesNothing();
        await bus.Advance(61);
        var message = await receiver.One();
        // The state: observed 6.
        var seen = (message.Text(), message.State, message.SequenceNumber);
        Equal("message", seen, ("later", ServiceBusMessageState.Scheduled, 2));
        Close("the enqueued time", message.EnqueuedTime, Later(0));
        await receiver.Complete(message);
        await bus.Counts("orders", ("active", 0), ("scheduled", 0));
    }

    /// <summary>The response to a schedule request has a sequence number for each message, in order.</summary>
    internal static async Task ByRequest(Bus bus)
    {
        var sender = bus.Sender("orders");
        Equal("numbers", await sender.ScheduleMessagesAsync(Texts("a", "b"), Later(300)), new[] { 1, 2 });
        Equal("another", await sender.ScheduleMessageAsync(new("c"), Later(200)), 3);
        await bus.Counts("orders", ("active", 0), ("scheduled", 3));
        await bus.Advance(301);
        var receiver = bus.Receiver("orders");
        var messages = await receiver.Receive(3);
        var seen = messages.Select(each => (each.SequenceNumber, each.Text()));
        Equal("messages in the order of their times", seen, new[] { (4, "c"), (5, "a"), (6, "b") });
        await receiver.Complete(messages);
    }

    /// <summary>A message scheduled for a time in the past is active at once.</summary>
    internal static async Task Past(Bus bus)
    {
        await bus.Send("orders", new Message("late") { ScheduledEnqueueTime = Later(-60) });
        var receiver = bus.Receiver("orders");
        var message = await receiver.One();
        Equal("sequence number", message.SequenceNumber, 1);
        await receiver.Complete(message);
    }

    /// <summary>
    /// A batch may contain scheduled and other messages. The SDK copies the first one's properties to the envelope; each
    /// message's own count.
    /// </summary>
    internal static async Task Batch(Bus bus)
    {
        await bus.SendTogether("orders", new("later") { ScheduledEnqueueTime = Later(60) }, new("now"));
        await bus.Counts("orders", ("active", 1), ("scheduled", 1));
        await bus.Advance(61);
        var receiver = bus.Receiver("orders");
        var messages = await receiver.Receive(2);
        Equal("bodies", messages.Texts(), new[] { "now", "later" });
        await receiver.Complete(messages);
    }

    /// <summary>A cancelled message is never delivered; the others are.</summary>
    internal static async Task Cancelled(Bus bus)
    {
        var sender = bus.Sender("orders");
        var numbers = await sender.ScheduleMessagesAsync(Texts("a", "b", "c"), Later(60));
        await sender.CancelScheduledMessageAsync(numbers[0]);
        await sender.CancelScheduledMessagesAsync(new[] { numbers[2] });
        await bus.Counts("orders", ("active", 0), ("scheduled", 1));
        await bus.Advance(61);
        var receiver = bus.Receiver("orders");
        var message = await receiver.One();
        Equal("body", message.Text(), "b");
        await receiver.Complete(message);
        await receiver.ReceivesNothing();
    }

    /// <summary>Unknown, cancelled and active messages cannot be cancelled; either all are cancelled or none.</summary>
    internal static async Task CancelRefused(Bus bus)
    {
        var sender = bus.Sender("orders");
        Task Refused(params long[] numbers) => Fails(Reason.MessageNotFound, sender.CancelScheduledMessagesAsync(numbers));
        var first = await sender.ScheduleMessageAsync(new("first"), Later(60));
        await Refused(4711);
        await Refused(first, 4711);
        await bus.Counts("orders", ("scheduled", 1));
        var second = await sender.ScheduleMessageAsync(new("second"), Later(60));
        await sender.CancelScheduledMessageAsync(second);
        await Refused(second);
        await bus.Advance(61);
        await Refused(first);
        var receiver = bus.Receiver("orders");
        var message = await receiver.One();
        await Refused(message.SequenceNumber);
        await receiver.Complete(message);
    }

    /// <summary>The time to live starts when the message becomes active: at 5:00, so that it ends at 15:00.</summary>
    internal static async Task Expires(Bus bus)
    {
        var message = new Message("short") { ScheduledEnqueueTime = Later(300), TimeToLive = TimeSpan.FromMinutes(10) };
        await bus.Send("expiring", message);
        await bus.Advance(840);
        await bus.Counts("expiring", ("active", 1), ("scheduled", 0), ("dead_letter", 0));
        await bus.Advance(61);
        var left = bus.IsEager ? 0 : 1;
        await bus.Counts("expiring", ("active", left), ("dead_letter", 1 - left));
        await bus.Receiver("expiring").ReceivesNothing();
        var deadLetters = bus.DeadLetters("expiring");
        var dead = await deadLetters.One();
        Equal("reason", dead.DeadLetterReason, "TTLExpiredException");
        await deadLetters.Complete(dead);
    }
}
