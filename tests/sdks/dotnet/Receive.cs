using System.Collections.Concurrent;

/// <summary>Receiving: with a lock, with deletion, several at once, and as a stream.</summary>
internal static class Receive
{
    /// <summary>A message is locked for the queue's lock duration, and removed when it is completed.</summary>
    internal static async Task PeekLock(Bus bus)
    {
        await bus.Send("orders", new Message("one"));
        var receiver = bus.Receiver("orders");
        var message = await receiver.One();
        Equal("body", message.Text(), "one");
        FreshLock(message.LockedUntil);
        await bus.Counts("orders", ("active", 1), ("locked", 1));
        await receiver.Complete(message);
        await bus.Counts("orders", ("active", 0), ("locked", 0));
        await receiver.ReceivesNothing();
    }

    /// <summary>A message is removed as soon as it has been delivered.</summary>
    internal static async Task ReceiveAndDelete(Bus bus)
    {
        await bus.Send("orders", Texts("one", "two"));
        var receiver = bus.Receiver("orders", deletes: true);
        var messages = await receiver.Receive(2);
        Equal("messages", messages.Select(each => (each.Text(), each.Deliveries())), new[] { ("one", 0), ("two", 0) });
        await bus.Counts("orders", ("active", 0), ("locked", 0));
        await receiver.ReceivesNothing();
    }

    /// <summary>A receive for more messages than available returns those that are available, in order.</summary>
    internal static async Task Several(Bus bus)
    {
        await bus.SendTogether("orders", Texts(Numbered(0, 20)));
        var receiver = bus.Receiver("orders");
        var messages = await receiver.ReceiveMessagesAsync(50, TimeSpan.FromSeconds(5));
        Equal("bodies", messages.Texts(), Numbered(0, 20));
        await receiver.Complete(messages.Reverse().ToArray());
        await bus.Counts("orders", ("active", 0), ("locked", 0));
    }

    /// <summary>An asynchronous stream gets every message.</summary>
    internal static async Task Stream(Bus bus)
    {
        await bus.SendTogether("orders", Texts(Numbered(0, 5)));
        var receiver = bus.Receiver("orders");
        var bodies = new List<string>();
        await foreach (var message in receiver.ReceiveMessagesAsync())
        {
            bodies.Add(message.Text());
            await receiver.Complete(message);
            if (bodies.Count == 5)
            {
                break;
            }
        }
        Equal("bodies", bodies, Numbered(0, 5));
        await bus.Counts("orders", ("active", 0), ("locked", 0));
    }

    /// <summary>A receive that is already waiting gets a message that is sent later.</summary>
    internal static async Task Waiting(Bus bus)
    {
        var receiver = bus.Receiver("orders");
        var receiving = receiver.One();
        await bus.Send("orders", new Message("late"));
        var message = await receiving;
        Equal("message", (message.Text(), message.Deliveries()), ("late", 0));
        await receiver.Complete(message);
    }

    /// <summary>A prefetching receiver locks messages before they are received, and gets them in order.</summary>
    internal static async Task Prefetch(Bus bus)
    {
        await bus.SendTogether("orders", Texts(Numbered(0, 3)));
        var receiver = bus.Receiver("orders", prefetch: 10);
        var first = await receiver.One();
        await bus.Counts("orders", ("active", 3), ("locked", 3));
        var rest = await receiver.Receive(2);
        Equal("bodies", rest.Prepend(first).Texts(), Numbered(0, 3));
        await receiver.Complete(rest.Prepend(first).ToArray());
        await bus.Counts("orders", ("active", 0), ("locked", 0));
    }

    /// <summary>A closed receiver leaves the messages that it did not receive unchanged, and those that it received locked.</summary>
    internal static async Task Closed(Bus bus)
    {
        await bus.SendTogether("orders", Texts(Numbered(0, 5)));
        var closing = bus.Receiver("orders");
        var held = await closing.Receive(2);
        await closing.CloseAsync();
        await bus.Counts("orders", ("active", 5), ("locked", 2));
        var receiver = bus.Receiver("orders");
        var rest = await receiver.Receive(3);
        Equal("messages", rest.Select(each => (each.Text(), each.Deliveries())), Numbered(2, 5).Select(each => (each, 0)));
        await receiver.Complete(held.Concat(rest).ToArray());
        await bus.Counts("orders", ("active", 0), ("locked", 0));
    }

    /// <summary>A polling receiver gets messages that arrive between two polls once.</summary>
    internal static async Task Polling(Bus bus)
    {
        var receiver = bus.Receiver("orders");
        foreach (var body in Numbered(0, 3))
        {
            await receiver.ReceivesNothing();
            await bus.Send("orders", new Message(body));
            var message = await receiver.One();
            Equal("message", (message.Text(), message.Deliveries()), (body, 0));
            await receiver.Complete(message);
        }
        await bus.Counts("orders", ("active", 0), ("locked", 0));
    }
}

/// <summary>Processors: handlers that the SDK calls with messages and errors, and whose messages it settles.</summary>
internal static class Processors
{
    /// <summary>A message is completed when its handler returns.</summary>
    internal static async Task Completes(Bus bus)
    {
        var seen = new ConcurrentQueue<string>();
        await using var processor = bus.Client.CreateProcessor("orders");
        await processor.Start(each => seen.Enqueue(each.Message.Text()), Unexpected);
        await bus.Send("orders", Texts(Numbered(0, 5)));
        await Until("five messages", () => seen.Count == 5);
        await bus.Counts("orders", ("active", 0), ("locked", 0));
        Equal("bodies", seen, Numbered(0, 5));
    }

    /// <summary>A message is abandoned when its handler throws, and the error handler is called.</summary>
    internal static async Task Abandons(Bus bus)
    {
        await bus.Send("orders", new Message("odd"));
        var reported = new ConcurrentQueue<ProcessErrorEventArgs>();
        var deliveries = new ConcurrentQueue<int>();
        await using var processor = bus.Client.CreateProcessor("orders");
        await processor.Start(
            each =>
            {
                deliveries.Enqueue(each.Message.Deliveries());
                True("it is the last delivery", each.Message.Deliveries() == 2);
            },
            reported.Enqueue);
        await bus.Counts("orders", ("active", 0), ("locked", 0), ("dead_letter", 0));
        Equal("deliveries", deliveries, new[] { 0, 1, 2 });
        Equal(
            "errors",
            reported.Select(each => (each.ErrorSource, each.EntityPath, each.Exception is Failure)),
            Enumerable.Repeat((ServiceBusErrorSource.ProcessMessageCallback, "orders", true), 2));
    }

    /// <summary>A handler may settle a message itself.</summary>
    internal static async Task Settles(Bus bus)
    {
        await bus.Send("orders", Texts("good", "bad"));
        await using var processor = bus.Client.CreateProcessor("orders", new ServiceBusProcessorOptions { AutoCompleteMessages = false });
        processor.ProcessMessageAsync += each => each.Message.Text() == "good"
            ? each.CompleteMessageAsync(each.Message)
            : each.DeadLetterMessageAsync(each.Message);
        await processor.Start(null, Unexpected);
        await bus.Counts("orders", ("active", 0), ("locked", 0), ("dead_letter", 1));
    }

    /// <summary>A processor reports errors, and retries.</summary>
    internal static async Task Reports(Bus bus)
    {
        var reported = new TaskCompletionSource<ProcessErrorEventArgs>();
        await using var processor = bus.Client.CreateProcessor("missing");
        await processor.Start(_ => { }, error => reported.TrySetResult(error));
        var error = await reported.Task.WaitAsync(Timeout);
        Equal("origin", (error.EntityPath, error.ErrorSource), ("missing", ServiceBusErrorSource.Receive));
        await Fails(Reason.MessagingEntityNotFound, Task.FromException(error.Exception));
    }

    /// <summary>A stopped processor receives no messages, and continues when it is started again.</summary>
    internal static async Task Stops(Bus bus)
    {
        var seen = new ConcurrentQueue<string>();
        await using var processor = bus.Client.CreateProcessor("orders");
        await processor.Start(each => seen.Enqueue(each.Message.Text()), Unexpected);
        await bus.Send("orders", new Message("first"));
        await bus.Counts("orders", ("active", 0), ("locked", 0));
        await processor.StopProcessingAsync();
        await bus.Send("orders", new Message("second"));
        await bus.Counts("orders", ("active", 1), ("locked", 0));
        await processor.StartProcessingAsync();
        await bus.Counts("orders", ("active", 0), ("locked", 0));
        Equal("bodies", seen, new[] { "first", "second" });
    }

    /// <summary>A session processor handles several sessions at a time, each in order, and takes the next when one is idle.</summary>
    internal static async Task Sessions(Bus bus)
    {
        var sessions = new[] { "1", "2", "3" };
        var sent = from letter in "abc" from session in sessions select Cart(session, $"{session}{letter}");
        await bus.Send("carts", sent.ToArray());
        var seen = new ConcurrentQueue<string>();
        var options = new ServiceBusSessionProcessorOptions
        {
            MaxConcurrentSessions = 2, SessionIdleTimeout = TimeSpan.FromMilliseconds(500),
        };
        await using var processor = bus.Client.CreateSessionProcessor("carts", options);
        processor.ProcessMessageAsync += each =>
        {
            True("it is delivered again", each.Message.Text() != "2b" || each.Message.Deliveries() > 0);
            seen.Enqueue(each.Message.Text());
            return Task.CompletedTask;
        };
        processor.ProcessErrorAsync += _ => Task.CompletedTask;
        await processor.StartProcessingAsync();
        await bus.Counts("carts", ("active", 0), ("locked", 0), ("dead_letter", 0));
        foreach (var session in sessions)
        {
            var expected = new[] { $"{session}a", $"{session}b", $"{session}c" };
            Equal($"session {session}", seen.Where(each => each.StartsWith(session)), expected);
        }
    }

    /// <summary>Starts a processor with these handlers.</summary>
    internal static Task Start(
        this ServiceBusProcessor processor, Action<ProcessMessageEventArgs> onMessage, Action<ProcessErrorEventArgs> onError)
    {
        if (onMessage != null)
        {
            processor.ProcessMessageAsync += each =>
            {
                onMessage(each);
                return Task.CompletedTask;
            };
        }
        processor.ProcessErrorAsync += each =>
        {
            onError(each);
            return Task.CompletedTask;
        };
        return processor.StartProcessingAsync();
    }

    /// <summary>For cases that expect no error; a missing message fails the wait for it.</summary>
    internal static void Unexpected(ProcessErrorEventArgs error) => Console.Error.WriteLine($"a processor reports {error.Exception}");
}
