/// <summary>Peeking: messages and their states, from a sequence number on.</summary>
internal static class Peek
{
    /// <summary>Peeking shows locked and waiting messages, and both are active.</summary>
    internal static async Task States(Bus bus)
    {
        await bus.Send("orders", Texts("locked", "waiting"));
        var receiver = bus.Receiver("orders");
        var locked = await receiver.One();
        var seen = (await receiver.Peek()).Select(each => (each.SequenceNumber, each.Text(), each.State));
        var state = ServiceBusMessageState.Active;
        Equal("messages peeked", seen, new[] { (1, "locked", state), (2, "waiting", state) });
        await receiver.Complete(locked);
    }

    /// <summary>A peek starts at a sequence number, continues where the last one ended, and changes no message.</summary>
    internal static async Task FromSequenceNumber(Bus bus)
    {
        await bus.SendTogether("orders", Texts(Numbered(1, 11)));
        var receiver = bus.Receiver("orders");
        var all = (await receiver.Peek(4)).Concat(await receiver.Peek(20));
        Equal("all", all.Select(each => each.SequenceNumber), Enumerable.Range(1, 10));
        var peeked = await receiver.Peek(3, 5);
        Equal("bodies", peeked.Texts(), Numbered(5, 8));
        Equal("numbers", peeked.Select(each => each.SequenceNumber), new[] { 5, 6, 7 });
        Equal("the last", (await receiver.Peek(3, 10)).Texts(), Numbered(10, 11));
        Equal("past the end", (await receiver.Peek(3, 11)).Length, 0);
        await bus.Counts("orders", ("active", 10), ("locked", 0));
    }

    /// <summary>A peek at an empty queue returns an empty list, not an error.</summary>
    internal static async Task Empty(Bus bus) => Equal("peeked", (await bus.Receiver("orders").Peek()).Length, 0);
}

/// <summary>Entities that do not exist: the SDK's error for every operation.</summary>
internal static class NotFound
{
    internal static Task Sender(Bus bus) => IsMissing(bus.Send("missing", new Message("lost")));

    internal static Task Receiver(Bus bus) => IsMissing(bus.Receiver("missing").TryReceive());

    internal static Task DeadLetters(Bus bus) => IsMissing(bus.DeadLetters("missing").TryReceive());

    internal static Task Peek(Bus bus) => IsMissing(bus.Receiver("missing").Peek());
}

/// <summary>
/// Other errors, as the SDK's error, and whether it is transient.
///
/// Source: service-bus-messaging-exceptions, service-bus-quotas. These have the conditions that belong to no other topic.
/// </summary>
internal static class Refusals
{
    /// <summary>A client with a wrong key has no access to any entity.</summary>
    internal static async Task WrongKey(Bus bus)
    {
        var wrong = bus.ConnectionString.Replace("SharedAccessKey=", "SharedAccessKey=not");
        await using var stranger = bus.TryingOnce(wrong);
        await Fails<UnauthorizedAccessException>(stranger.Send("orders", new Message("forged")));
        await Fails<UnauthorizedAccessException>(stranger.Receiver("orders").TryReceive());
    }

    /// <summary>No client sends to a dead-letter queue.</summary>
    internal static Task ToDeadLetters(Bus bus) =>
        Fails<InvalidOperationException>(bus.Send("orders/$DeadLetterQueue", new Message("bad")));

    /// <summary>A property of more than 32 KB is an internal error of the service.</summary>
    internal static async Task LongProperty(Bus bus)
    {
        var message = new Message("wide") { ApplicationProperties = { ["wide"] = new string('w', 40_000) } };
        await using var once = bus.TryingOnce();
        var error = await Fails<ServiceBusException>(once.Send("orders", message));
        Equal("reason", error.Reason, Reason.GeneralError);
        await bus.Counts("orders", ("active", 0));
    }
}
