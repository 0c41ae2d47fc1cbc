using System.Text.RegularExpressions;
using Azure.Core.Amqp;

/// <summary>Sending: one message, a list, a batch, and the properties that arrive at the receiver.</summary>
internal static class Send
{
    /// <summary>One message per call arrives, in the order sent.</summary>
    internal static async Task Single(Bus bus)
    {
        await bus.Send("orders", Texts("first", "second"));
        await Arrive(bus, "first", "second");
    }

    /// <summary>A list is sent as one transfer, and its messages arrive separately.</summary>
    internal static async Task ListOfMessages(Bus bus)
    {
        await bus.SendTogether("orders", Texts(Numbered(0, 5)));
        await Arrive(bus, Numbered(0, 5));
    }

    /// <summary>A batch accepts messages up to its size, reports when it is full, and arrives completely.</summary>
    internal static async Task Batch(Bus bus)
    {
        var sender = bus.Sender("orders");
        using var batch = await sender.CreateMessageBatchAsync(new CreateMessageBatchOptions { MaxSizeInBytes = 4096 });
        var body = new string('x', 512);
        while (batch.TryAddMessage(new(body)))
        {
        }
        True($"a batch of 4,096 bytes takes {batch.Count} messages of 512 bytes", batch.Count is >= 5 and <= 7);
        await sender.SendMessagesAsync(batch);
        await Arrive(bus, Enumerable.Repeat(body, batch.Count).ToArray());
    }

    /// <summary>The receiver reads every property that an application can set on a message, with its type.</summary>
    internal static async Task Properties(Bus bus)
    {
        var properties = Messages.Properties(
            ("text", "größer"), ("whole", 42), ("negative", -(1L << 40)), ("fraction", 0.5), ("flag", true), ("nothing", null),
            ("instant", new DateTimeOffset(2024, 2, 29, 12, 30, 15, 250, TimeSpan.Zero)), ("span", TimeSpan.FromSeconds(3)),
            ("id", Guid.NewGuid()), ("small", (byte)3), ("exact", 12.5m), ("letter", 'x'), ("address", new Uri("http://a/b")));
        var sent = new Message("{}")
        {
            MessageId = "order-17", ContentType = "application/json", CorrelationId = "request-4", Subject = "placed",
            To = "warehouse", ReplyTo = "confirmations", ReplyToSessionId = "cart-7", PartitionKey = "eu",
            TimeToLive = TimeSpan.FromMinutes(5),
        };
        properties.ToList().ForEach(sent.ApplicationProperties.Add);
        await bus.Send("orders", sent);
        var receiver = bus.Receiver("orders");
        var message = await receiver.One();
        Equal(
            "properties",
            (message.MessageId, message.ContentType, message.CorrelationId, message.Subject, message.To, message.ReplyTo,
                message.ReplyToSessionId, message.PartitionKey, message.TimeToLive),
            (sent.MessageId, sent.ContentType, sent.CorrelationId, sent.Subject, sent.To, sent.ReplyTo,
                sent.ReplyToSessionId, sent.PartitionKey, sent.TimeToLive));
        Equal("application properties", message.ApplicationProperties, properties);
        Equal("body", message.Text(), "{}");
        Equal("numbers", (message.SequenceNumber, message.EnqueuedSequenceNumber, message.Deliveries()), (1, 0, 0));
        // The sender's own (observed 5).
        Close("the expiry", message.ExpiresAt, Later(300));
        Close("the enqueued time", message.EnqueuedTime, Later(0));
        await receiver.Complete(message);
    }

    /// <summary>The broker generates an id for a message that has none (D30).</summary>
    internal static async Task WithoutId(Bus bus)
    {
        await bus.Send("orders", new Message("no id"));
        var receiver = bus.Receiver("orders");
        var message = await receiver.One();
        True($"{message.MessageId} is 32 hex digits", Regex.IsMatch(message.MessageId, "^[0-9a-f]{32}$"));
        await receiver.Complete(message);
    }

    /// <summary>Bodies that are an AMQP value or sequences arrive unchanged, whatever they contain.</summary>
    internal static async Task BodyKinds(Bus bus)
    {
        var value = new Dictionary<string, object> { ["total"] = 3, ["lines"] = new[] { "a", "b" } };
        IList<object>[] sequence = { new object[] { 1, 2, "three" }, new object[] { "four" } };
        ReadOnlyMemory<byte>[] data = { new byte[] { 0, 255 }, new byte[] { 1 } };
        AmqpMessageBody[] bodies =
        {
            AmqpMessageBody.FromValue(value), AmqpMessageBody.FromSequence(sequence), AmqpMessageBody.FromData(data),
            AmqpMessageBody.FromData(new[] { ReadOnlyMemory<byte>.Empty }),
        };
        foreach (var body in bodies)
        {
            var message = new Message();
            message.GetRawAmqpMessage().Body = body;
            await bus.Send("orders", message);
        }
        var receiver = bus.Receiver("orders");
        foreach (var body in bodies)
        {
            var message = await receiver.One();
            var got = message.GetRawAmqpMessage().Body;
            Equal("kind of body", got.BodyType, body.BodyType);
            Equal("body", Content(got), Content(body));
            await receiver.Complete(message);
        }
    }

    /// <summary>Footers and annotations are delivered.</summary>
    internal static async Task Annotated(Bus bus)
    {
        var sent = new Message("annotated");
        var raw = sent.GetRawAmqpMessage();
        raw.DeliveryAnnotations["delivery"] = "d";
        raw.MessageAnnotations["message"] = "m";
        raw.Footer["footer"] = "f";
        await bus.Send("orders", sent);
        var receiver = bus.Receiver("orders");
        var message = await receiver.One();
        var got = message.GetRawAmqpMessage();
        var seen = (got.DeliveryAnnotations["delivery"], got.MessageAnnotations["message"], got.Footer["footer"], message.Text());
        Equal("annotations, footer and body", seen, ("d", "m", "f", "annotated"));
        await receiver.Complete(message);
    }

    private static object Content(AmqpMessageBody body) => body.TryGetValue(out var value) ? value
        : body.TryGetSequence(out var sequence) ? sequence
        : body.TryGetData(out var data) ? data.Select(each => each.ToArray())
        : null;

    /// <summary>Receives and completes all messages of the queue: these bodies in this order, numbered from 1.</summary>
    private static async Task Arrive(Bus bus, params string[] bodies)
    {
        var receiver = bus.Receiver("orders");
        var messages = await receiver.Receive(bodies.Length);
        Equal("bodies", messages.Texts(), bodies);
        Equal("sequence numbers", messages.Select(each => each.SequenceNumber), Enumerable.Range(1, bodies.Length));
        await receiver.Complete(messages);
    }
}
