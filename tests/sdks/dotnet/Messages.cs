/// <summary>Messages, and what receivers do with them.</summary>
internal static class Messages
{
    /// <summary>The time that a receive waits for a message that must not arrive.</summary>
    internal static readonly TimeSpan Nothing = TimeSpan.FromMilliseconds(300);

    /// <summary>The time that a receive waits for its error.</summary>
    private static readonly TimeSpan Promptly = TimeSpan.FromSeconds(30);

    internal static Message Price(string body, object value) => new(body) { ApplicationProperties = { ["price"] = value } };

    /// <summary>A message of a session.</summary>
    internal static Message Cart(string session, string body) => new(body) { SessionId = session };

    internal static Message Sized(int bytes) => new(new byte[bytes]);

    internal static Message[] Texts(params string[] bodies) => bodies.Select(each => new Message(each)).ToArray();

    internal static string[] Numbered(int from, int to) =>
        Enumerable.Range(from, to - from).Select(each => $"number {each}").ToArray();

    internal static Dictionary<string, object> Properties(params (string Name, object Value)[] properties) =>
        properties.ToDictionary(each => each.Name, each => each.Value);

    /// <summary>A time from now, by the clock of this process.</summary>
    internal static DateTimeOffset Later(int seconds) => DateTimeOffset.UtcNow.AddSeconds(seconds);

    internal static string Text(this Received message) => message.Body.ToString();

    internal static string[] Texts(this IEnumerable<Received> messages) => messages.Select(Text).ToArray();

    /// <summary>The earlier deliveries: the SDK counts this one too.</summary>
    internal static int Deliveries(this Received message) => message.DeliveryCount - 1;

    /// <summary>Receives exactly this number of messages, or fails with the number received.</summary>
    internal static async Task<Received[]> Receive(this Receiver receiver, int count)
    {
        var messages = new List<Received>();
        for (var end = DateTime.UtcNow + Timeout; messages.Count < count && DateTime.UtcNow < end;)
        {
            messages.AddRange(await receiver.ReceiveMessagesAsync(count - messages.Count, Timeout));
        }
        Equal("number of messages received", messages.Count, count);
        return messages.ToArray();
    }

    internal static async Task<Received> One(this Receiver receiver) => (await receiver.Receive(1))[0];

    internal static async Task ReceivesNothing(this Receiver receiver) =>
        Equal("messages received", (await receiver.ReceiveMessagesAsync(1, Nothing)).Texts(), Array.Empty<string>());

    /// <summary>A receive that must fail.</summary>
    internal static Task TryReceive(this Receiver receiver) => receiver.ReceiveMessagesAsync(1, Promptly);

    /// <summary>
    /// The receive after one that the end of its link ends at once. That one has no error in this SDK, unless the link ended
    /// before it.
    /// </summary>
    internal static async Task AfterEnd(this Receiver receiver, Task receiving)
    {
        await receiving.WaitAsync(Promptly / 2);
        await receiver.TryReceive();
    }

    internal static async Task Complete(this Receiver receiver, params Received[] messages)
    {
        foreach (var message in messages)
        {
            await receiver.CompleteMessageAsync(message);
        }
    }

    internal static async Task<Received[]> Peek(this Receiver receiver, int count = 10, long? from = null) =>
        (await receiver.PeekMessagesAsync(count, from)).ToArray();

    internal static async Task<Received> Deferred(this Receiver receiver, long number = 1) =>
        await receiver.ReceiveDeferredMessageAsync(number);

    /// <summary>Receives and defers this number of messages.</summary>
    internal static async Task Defer(this Receiver receiver, int count = 1)
    {
        foreach (var message in await receiver.Receive(count))
        {
            await receiver.DeferMessageAsync(message);
        }
    }

    internal static async Task<List<T>> Everything<T>(this IAsyncEnumerable<T> listing)
    {
        var items = new List<T>();
        await foreach (var item in listing)
        {
            items.Add(item);
        }
        return items;
    }
}
