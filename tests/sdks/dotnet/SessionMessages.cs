/// <summary>
/// Messages of sessions: their strict order, and their state when a receiver does not complete them.
///
/// Source: message-sessions, message-deferral, message-browsing, service-bus-dead-letter-queues.
/// </summary>
internal static class SessionMessages
{
    /// <summary>An abandoned message is the next one again, before the later messages of its session.</summary>
    internal static async Task InOrder(Bus bus)
    {
        await bus.Send("carts", "abcd".Select(each => Cart("1", $"{each}")).ToArray());
        var receiver = await bus.Session("carts", "1");
        await receiver.AbandonMessageAsync(await receiver.One());
        var first = await receiver.Receive(3);
        Equal("bodies", first.Texts(), new[] { "a", "b", "c" });
        await receiver.AbandonMessageAsync(first[2]);
        await receiver.Complete(first[1]);
        await receiver.AbandonMessageAsync(first[0]);
        var messages = await receiver.Receive(3);
        Equal("messages", messages.Select(each => (each.Text(), each.Deliveries())), new[] { ("a", 2), ("c", 1), ("d", 0) });
        await receiver.Complete(messages);
    }

    /// <summary>A deferred message is received by its sequence number, by the receiver of its session.</summary>
    internal static async Task Deferred(Bus bus)
    {
        await bus.Send("carts", Cart("1", "a"), Cart("1", "b"));
        var deferring = await bus.Session("carts", "1");
        var messages = await deferring.Receive(2);
        await deferring.DeferMessageAsync(messages[0]);
        await deferring.Complete(messages[1]);
        await deferring.ReceivesNothing();
        await deferring.CloseAsync();
        await bus.Counts("carts", ("active", 1), ("deferred", 1), ("locked", 0));
        var another = await bus.Session("carts", "2");
        await Fails(Reason.MessageNotFound, another.Deferred());
        var receiver = await bus.Session("carts", "1");
        var message = await receiver.Deferred();
        Equal("state", message.State, ServiceBusMessageState.Deferred);
        await receiver.AbandonMessageAsync(message);
        message = await receiver.Deferred();
        Equal("deliveries", message.Deliveries(), 2);
        await receiver.Complete(message);
        await bus.Counts("carts", ("active", 0), ("deferred", 0), ("locked", 0));
    }

    /// <summary>A session that has only deferred messages is not the next available session.</summary>
    internal static async Task DeferredAlone(Bus bus)
    {
        await bus.Send("carts", Cart("1", "a"));
        await using (var receiver = await bus.Session("carts", "1"))
        {
            await receiver.Defer();
        }
        await using var impatient = bus.TryingOnce(timeout: 2);
        await Fails(Reason.ServiceTimeout, impatient.NextSession("carts"));
    }

    /// <summary>A session receiver peeks only at its session; other receivers peek at all sessions.</summary>
    internal static async Task Peeked(Bus bus)
    {
        await bus.Send("carts", Cart("1", "a"), Cart("2", "b"), Cart("1", "c"));
        var receiver = await bus.Session("carts", "1");
        var seen = (await receiver.Peek()).Select(each => (each.SequenceNumber, each.Text()));
        Equal("messages of the session", seen, new[] { (1, "a"), (3, "c") });
        var rest = (await receiver.Peek(10, 2)).Select(each => (each.SessionId, each.Text()));
        Equal("from the second on", rest, new[] { ("1", "c") });
        Equal("messages of the queue", (await bus.Receiver("carts").Peek()).Texts(), new[] { "a", "b", "c" });
        await bus.Counts("carts", ("active", 3), ("locked", 0));
    }

    /// <summary>Dead-lettered messages are received without a session, and keep its id.</summary>
    internal static async Task DeadLettered(Bus bus)
    {
        await bus.Send("carts", Cart("1", "bad"), Cart("2", "worse"));
        foreach (var id in new[] { "1", "2" })
        {
            var receiver = await bus.Session("carts", id);
            await receiver.DeadLetterMessageAsync(await receiver.One(), "Rejected", "no total");
        }
        var deadLetters = bus.DeadLetters("carts");
        var messages = await deadLetters.Receive(2);
        var seen = messages.Select(each => (each.Text(), each.SessionId, each.DeadLetterReason));
        Equal("dead letters", seen, new[] { ("bad", "1", "Rejected"), ("worse", "2", "Rejected") });
        await deadLetters.RenewMessageLockAsync(messages[0]);
        await deadLetters.Complete(messages);
        await bus.Counts("carts", ("active", 0), ("dead_letter", 0));
    }

    /// <summary>After its last delivery a message leaves the session to the next messages.</summary>
    internal static async Task AbandonsToTheLimit(Bus bus)
    {
        await bus.Send("limited-carts", Cart("1", "poison"), Cart("1", "good"));
        var receiver = await bus.Session("limited-carts", "1");
        for (var deliveries = 0; deliveries < 2; deliveries++)
        {
            var message = await receiver.One();
            Equal("delivered", (message.Text(), message.Deliveries()), ("poison", deliveries));
            await receiver.AbandonMessageAsync(message);
        }
        await Sessions.Next(receiver, "good");
        await IsDead(bus.DeadLetters("limited-carts"), "poison", "1", "MaxDeliveryCountExceeded");
    }

    /// <summary>A session queue rejects a message without a session id, and a batch that contains one.</summary>
    internal static async Task WithoutId(Bus bus)
    {
        var sender = bus.Sender("carts");
        var text = "The SessionId was not set on a message, and it cannot be sent to the entity.";
        await Fails<InvalidOperationException>(sender.SendMessageAsync(new("lost")), text);
        await Fails<InvalidOperationException>(sender.SendMessagesAsync(new[] { Cart("1", "with"), new("without") }), text);
        await Fails<InvalidOperationException>(sender.ScheduleMessageAsync(new("later"), Later(60)), text);
        await bus.Counts("carts", ("active", 0), ("scheduled", 0), ("dead_letter", 0));
    }

    /// <summary>A topic accepts a message without a session id, and a session subscription dead-letters it.</summary>
    internal static async Task WithoutIdAtSubscription(Bus bus)
    {
        await bus.Send("steps", new("stray"), Cart("1", "a"));
        await bus.Counts("steps/Subscriptions/all", ("active", 2), ("dead_letter", 0));
        await bus.Counts("steps/Subscriptions/by-cart", ("active", 1), ("dead_letter", 1));
        await IsDeadWithoutId(bus.Subscriber("steps", "by-cart", SubQueue.DeadLetter));
    }

    /// <summary>A forwarded message joins its session, or is dead-lettered if it has none.</summary>
    internal static async Task Forwarded(Bus bus)
    {
        await bus.Send("inbox", Cart("1", "a"), new("stray"));
        await Sessions.Next(await bus.Session("carts", "1"), "a");
        await IsDeadWithoutId(bus.DeadLetters("carts"));
    }

    /// <summary>A scheduled message joins its session when it becomes active.</summary>
    internal static async Task Scheduled(Bus bus)
    {
        var sender = bus.Sender("carts");
        await sender.ScheduleMessagesAsync(new[] { Cart("1", "asked"), Cart("2", "another's") }, Later(300));
        await sender.SendMessageAsync(new("annotated") { SessionId = "1", ScheduledEnqueueTime = Later(200) });
        await bus.Counts("carts", ("active", 0), ("scheduled", 3));
        await using (var early = await bus.Session("carts", "1"))
        {
            await early.ReceivesNothing();
        }
        await bus.Advance(301);
        var receiver = await bus.NextSession("carts");
        Equal("session id", receiver.SessionId, "1");
        var messages = await receiver.Receive(2);
        Equal("bodies", messages.Texts(), new[] { "annotated", "asked" });
        await receiver.Complete(messages);
        await bus.Counts("carts", ("active", 1), ("scheduled", 0));
    }

    /// <summary>A message of a session expires like any other, and the following ones are delivered next.</summary>
    internal static async Task Expires(Bus bus)
    {
        var old = Expiry.ShortLived("old");
        old.SessionId = "1";
        await bus.Send("carts", old, Cart("1", "new"));
        await bus.Advance(31);
        await Sessions.Next(await bus.Session("carts", "1"), "new");
        await IsDead(bus.DeadLetters("carts"), "old", "1", "TTLExpiredException");
    }

    /// <summary>A reply arrives in the session that the request specifies.</summary>
    internal static async Task Replies(Bus bus)
    {
        await bus.Send("carts", new Message("ask") { SessionId = "requests", ReplyTo = "carts", ReplyToSessionId = "answers-7" });
        var requests = await bus.Session("carts", "requests");
        var request = await requests.One();
        await bus.Send(request.ReplyTo, Cart(request.ReplyToSessionId, "answer"));
        await requests.Complete(request);
        var answers = await bus.Session("carts", "answers-7");
        var answer = await answers.One();
        Equal("answer", (answer.Text(), answer.ReplyToSessionId), ("answer", (string)null));
        await answers.Complete(answer);
    }

    private static Task IsDeadWithoutId(Receiver receiver)
    {
        var description = "Session enabled entity doesn't allow a message whose session identifier is null.";
        return IsDead(receiver, "stray", null, "Session ID is null.", description);
    }

    /// <summary>Receives the only dead-lettered message.</summary>
    private static async Task IsDead(Receiver receiver, string body, string session, string reason, string description = null)
    {
        var dead = await receiver.One();
        Equal("dead letter", (dead.Text(), dead.SessionId, dead.DeadLetterReason), (body, session, reason));
        Equal("description", dead.DeadLetterErrorDescription, description ?? dead.DeadLetterErrorDescription);
        await receiver.Complete(dead);
    }
}
