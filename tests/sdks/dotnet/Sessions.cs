using System.Threading;

/// <summary>
/// Sessions: accepted by their ids or as the next one, by one receiver at a time.
///
/// Source: message-sessions, and D10 for which one is next. <c>carts</c>, <c>limited-carts</c>, of two deliveries, and
/// <c>quick-carts</c>, whose locks last twenty seconds, require sessions; <c>inbox</c> forwards to <c>carts</c>; <c>steps</c> has
/// the subscriptions <c>by-cart</c>, which requires sessions, and <c>all</c>, which does not; <c>orders</c> is plain.
/// </summary>
internal static class Sessions
{
    /// <summary>A session is accepted by its id, and delivers only its own messages.</summary>
    internal static async Task ById(Bus bus)
    {
        await bus.Send("carts", Cart("1", "a"), Cart("2", "b"), Cart("1", "c"));
        var receiver = await bus.Session("carts", "1");
        Equal("session id", receiver.SessionId, "1");
        FreshLock(receiver.SessionLockedUntil);
        var messages = await receiver.Receive(2);
        Equal("messages", messages.Select(each => (each.SessionId, each.Text())), new[] { ("1", "a"), ("1", "c") });
        await bus.Counts("carts", ("active", 3), ("locked", 2));
        await receiver.Complete(messages);
        await receiver.ReceivesNothing();
        await bus.Counts("carts", ("active", 1), ("locked", 0));
    }

    /// <summary>An empty session is accepted by its id, and delivers messages that arrive later.</summary>
    internal static async Task Empty(Bus bus)
    {
        var receiver = await bus.Session("carts", "1");
        await receiver.ReceivesNothing();
        await bus.Send("carts", Cart("2", "another's"), Cart("1", "late"));
        await Next(receiver, "late");
    }

    /// <summary>The next available session is the unlocked one whose first message is the oldest.</summary>
    internal static async Task NextAvailable(Bus bus)
    {
        await bus.Send("carts", Cart("2", "a"), Cart("1", "b"), Cart("2", "c"));
        var first = await bus.NextSession("carts");
        var second = await bus.NextSession("carts");
        foreach (var (receiver, id, expected) in new[] { (second, "1", new[] { "b" }), (first, "2", new[] { "a", "c" }) })
        {
            Equal("session id", receiver.SessionId, id);
            FreshLock(receiver.SessionLockedUntil);
            var messages = await receiver.Receive(expected.Length);
            Equal($"bodies of session {id}", messages.Texts(), expected);
            await receiver.Complete(messages);
        }
        await bus.Counts("carts", ("active", 0), ("locked", 0));
    }

    /// <summary>A receiver waits until a session is available.</summary>
    internal static async Task WaitsForNext(Bus bus)
    {
        var opening = bus.NextSession("carts");
        await Task.Delay(Nothing);
        True("it waits", !opening.IsCompleted);
        await bus.Send("carts", Cart("1", "late"));
        var receiver = await opening;
        Equal("session id", receiver.SessionId, "1");
        await Next(receiver, "late");
    }

    /// <summary>A receiver that gets no session gets an error after its timeout.</summary>
    internal static async Task TimesOut(Bus bus)
    {
        await bus.Send("carts", Cart("1", "taken"));
        await bus.Session("carts", "1");
        await using var impatient = bus.TryingOnce(timeout: 2);
        var begin = DateTime.UtcNow;
        await Fails(Reason.ServiceTimeout, impatient.NextSession("carts"));
        // The broker's default of 65 seconds would be too long for the case.
        True("it waited for two seconds", (DateTime.UtcNow - begin).TotalSeconds is > 1.5 and < 30);
    }

    /// <summary>A receiver that stops waiting leaves the session to the next one.</summary>
    internal static async Task Cancelled(Bus bus)
    {
        using var source = new CancellationTokenSource();
        var opening = bus.Client.AcceptNextSessionAsync("carts", null, source.Token);
        await Task.Delay(Nothing);
        True("it waits", !opening.IsCompleted);
        source.Cancel();
        await Fails<TaskCanceledException>(opening);
        var waiting = bus.NextSession("carts");
        await bus.Send("carts", Cart("1", "late"));
        await Next(await waiting, "late");
    }

    /// <summary>A session has one receiver at a time.</summary>
    internal static async Task Taken(Bus bus)
    {
        var holder = await bus.Session("carts", "1");
        await using var once = bus.TryingOnce();
        await Fails(Reason.SessionCannotBeLocked, once.Session("carts", "1"));
        await holder.CloseAsync();
        Equal("session id", (await bus.Session("carts", "1")).SessionId, "1");
    }

    /// <summary>A closed receiver unlocks its session at once, and unsettled messages are delivered again, uncounted.</summary>
    internal static async Task Closed(Bus bus)
    {
        await bus.Send("carts", Cart("1", "a"), Cart("1", "b"), Cart("1", "c"));
        var closing = await bus.Session("carts", "1");
        await closing.Receive(2);
        await bus.Counts("carts", ("active", 3), ("locked", 2));
        await closing.CloseAsync();
        await bus.Counts("carts", ("active", 3), ("locked", 0));
        var receiver = await bus.NextSession("carts");
        var messages = await receiver.Receive(3);
        Equal("messages", messages.Select(each => (each.Text(), each.Deliveries())), new[] { ("a", 0), ("b", 0), ("c", 0) });
        await receiver.Complete(messages);
    }

    /// <summary>Receivers of different sessions work at the same time and do not get each other's messages.</summary>
    internal static async Task SideBySide(Bus bus)
    {
        await bus.Send("carts", OfThreeSessions());
        var receivers = await Task.WhenAll(Enumerable.Range(0, 3).Select(_ => bus.NextSession("carts")));
        for (var turn = 0; turn < 3; turn++)
        {
            foreach (var receiver in receivers.OrderBy(each => each.SessionId))
            {
                await Next(receiver, $"{(3 * turn) + int.Parse(receiver.SessionId)}");
            }
        }
        await bus.Counts("carts", ("active", 0), ("locked", 0));
    }

    /// <summary>A processor of several sessions gets their messages, each session's in order, and completes them.</summary>
    internal static async Task Streams(Bus bus)
    {
        await bus.Send("carts", OfThreeSessions());
        var seen = Enumerable.Range(0, 3).ToDictionary(each => $"{each}", _ => new List<string>());
        var options = new ServiceBusSessionProcessorOptions { MaxConcurrentSessions = 3 };
        await using var processor = bus.Client.CreateSessionProcessor("carts", options);
        processor.ProcessMessageAsync += each =>
        {
            seen[each.SessionId].Add(each.Message.Text());
            return Task.CompletedTask;
        };
        processor.ProcessErrorAsync += each =>
        {
            Processors.Unexpected(each);
            return Task.CompletedTask;
        };
        await processor.StartProcessingAsync();
        await bus.Counts("carts", ("active", 0), ("locked", 0));
        Equal("bodies by session", seen.Values, new[] { new[] { "0", "3", "6" }, new[] { "1", "4", "7" }, new[] { "2", "5", "8" } });
    }

    /// <summary>A session receiver may use receive-and-delete.</summary>
    internal static async Task ReceiveAndDelete(Bus bus)
    {
        await bus.Send("carts", Cart("1", "a"), Cart("2", "b"), Cart("1", "c"));
        var receiver = await bus.Session("carts", "1", deletes: true);
        Equal("bodies", (await receiver.Receive(2)).Texts(), new[] { "a", "c" });
        await bus.Counts("carts", ("active", 1), ("locked", 0));
    }

    /// <summary>A subscription may require sessions, whether or not others of the topic do.</summary>
    internal static async Task Subscription(Bus bus)
    {
        await bus.Send("steps", Cart("1", "a"), Cart("2", "b"), Cart("1", "c"));
        var receiver = await bus.Client.AcceptSessionAsync("steps", "by-cart", "1");
        var messages = await receiver.Receive(2);
        Equal("bodies of the session", messages.Texts(), new[] { "a", "c" });
        await receiver.Complete(messages);
        var neighbour = bus.Subscriber("steps", "all");
        var copies = await neighbour.Receive(3);
        var seen = copies.Select(each => (each.SessionId, each.Text()));
        Equal("messages of the neighbour", seen, new[] { ("1", "a"), ("2", "b"), ("1", "c") });
        await neighbour.Complete(copies);
        await bus.Counts("steps/Subscriptions/by-cart", ("active", 1));
    }

    /// <summary>A session queue or subscription rejects receivers without a session.</summary>
    internal static async Task PlainReceiver(Bus bus)
    {
        var text = "It is not possible for an entity that requires sessions to create a non-sessionful message receiver.";
        await Fails<InvalidOperationException>(bus.Receiver("carts").TryReceive(), text);
        await Fails<InvalidOperationException>(bus.Subscriber("steps", "by-cart").TryReceive(), text);
    }

    /// <summary>An entity without sessions rejects session receivers, and so does a dead-letter queue.</summary>
    internal static async Task OnPlainQueue(Bus bus)
    {
        var text = "A sessionful message receiver cannot be created on an entity that does not require sessions.";
        foreach (var entity in new[] { "orders", "steps/Subscriptions/all", "carts/$DeadLetterQueue" })
        {
            await Fails<InvalidOperationException>(bus.NextSession(entity), text);
            await Fails<InvalidOperationException>(bus.Session(entity, "1"), text);
        }
    }

    /// <summary>A session id has at most 128 characters.</summary>
    internal static async Task LongId(Bus bus)
    {
        var longest = new string('c', 128);
        Equal("session id", (await bus.Session("carts", longest)).SessionId, longest);
        await Fails<Exception>(bus.Session("carts", longest + "c"), "128");
    }

    /// <summary>A disabled queue detaches its session receivers and rejects new ones.</summary>
    internal static async Task Disabled(Bus bus)
    {
        var receiver = await bus.Session("carts", "1");
        await bus.Configure("carts", new { Status = "ReceiveDisabled" });
        await bus.Send("carts", Cart("1", "kept"));
        await IsLost(receiver, "is currently disabled");
        await IsDisabled(bus.NextSession("carts"));
        await IsDisabled(bus.Session("carts", "1"));
        await bus.Configure("carts", new { Status = "Active" });
        Equal("session id", (await bus.NextSession("carts")).SessionId, "1");
    }

    /// <summary>
    /// The error of a receiver whose link has ended. A receive that waits for messages when the link ends would wait for another
    /// minute and return none, because this SDK waits for the answer to a drain.
    /// </summary>
    internal static async Task IsLost(ServiceBusSessionReceiver receiver, string cause)
    {
        await Until("the end of the receiver", () => receiver.IsClosed);
        var error = await Fails(Reason.SessionLockLost, receiver.TryReceive());
        True($"the cause {error} is that it {cause}", $"{error}".Contains(cause));
    }

    /// <summary>Receives and completes the next message.</summary>
    internal static async Task Next(Receiver receiver, string body, int deliveries = 0)
    {
        var message = await receiver.One();
        Equal("delivered", (message.Text(), message.Deliveries()), (body, deliveries));
        await receiver.Complete(message);
    }

    /// <summary>Messages of three sessions in turn.</summary>
    private static Message[] OfThreeSessions() => Enumerable.Range(0, 9).Select(each => Cart($"{each % 3}", $"{each}")).ToArray();
}
