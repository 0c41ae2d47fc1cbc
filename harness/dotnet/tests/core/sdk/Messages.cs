using System;
using System.Collections.Generic;
using System.Linq;
using System.Text.Json;
using System.Text.Json.Nodes;
using System.Threading.Tasks;
using System.Transactions;
using Azure.Core.Amqp;
using Azure.Messaging.ServiceBus;
using NUnit.Framework;
using ServiceBus.Testing;

/// <summary>Messages of the SDK, without sessions.</summary>
public class Messages
{
    [Test]
    public async Task MessagesKeepTheirProperties()
    {
        await using var bus = await ServiceBusEmulator.StartAsync();
        await using var client = Sdk.Client(bus);
        var values = new Dictionary<string, object>
        {
            ["int"] = 1, ["long"] = 2L, ["byte"] = (byte)3, ["sbyte"] = (sbyte)-3, ["ushort"] = (ushort)3, ["uint"] = 3u, ["ulong"] = 3ul,
            ["string"] = "é", ["char"] = 'x', ["bool"] = true, ["double"] = 1.5, ["float"] = 1.5f, ["decimal"] = 12.5m, ["null"] = null,
            ["time"] = new DateTime(2020, 1, 2, 3, 4, 5, DateTimeKind.Utc), ["offset"] = DateTimeOffset.UnixEpoch.AddTicks(123),
            ["span"] = TimeSpan.FromSeconds(3), ["guid"] = Guid.NewGuid(), ["uri"] = new Uri("http://a/b"),
        };
        var sent = new ServiceBusMessage("é")
        {
            MessageId = "m", CorrelationId = "c", ContentType = "text/plain", Subject = "s", To = "to", ReplyTo = "r",
            ReplyToSessionId = "rs", PartitionKey = "p", TimeToLive = TimeSpan.FromMinutes(2),
        };
        values.ToList().ForEach(each => sent.ApplicationProperties.Add(each));
        await client.CreateSender("queue.1").SendMessageAsync(sent);
        await using var receiver = client.CreateReceiver("queue.1");
        Assert.That((await receiver.PeekMessageAsync()).State, Is.EqualTo(ServiceBusMessageState.Active));
        var got = await receiver.ReceiveMessageAsync();
        Assert.That(got.ApplicationProperties, Is.EquivalentTo(values));
        Assert.That(got.ApplicationProperties.Select(Type), Is.EqualTo(values.Select(Type)));
        var texts = new[] { $"{got.Body}", got.MessageId, got.CorrelationId, got.ContentType, got.Subject, got.To, got.ReplyTo };
        Assert.That(texts, Is.EqualTo(new[] { "é", "m", "c", "text/plain", "s", "to", "r" }));
        Assert.That((got.ReplyToSessionId, got.PartitionKey, got.TimeToLive), Is.EqualTo(("rs", "p", TimeSpan.FromMinutes(2))));
        Assert.That((got.DeliveryCount, got.SequenceNumber, got.LockedUntil > got.EnqueuedTime), Is.EqualTo((1, 1L, true)));
        await receiver.RenewMessageLockAsync(got);
        await receiver.CompleteMessageAsync(got);
        await bus.AssertEmptyAsync("queue.1");
    }

    [Test]
    public async Task BodiesAreValuesAndSequences()
    {
        await using var bus = await ServiceBusEmulator.StartAsync();
        await using var client = Sdk.Client(bus);
        var value = new ServiceBusMessage();
        value.GetRawAmqpMessage().Body = AmqpMessageBody.FromValue(42);
        var sequence = new ServiceBusMessage();
        sequence.GetRawAmqpMessage().Body = AmqpMessageBody.FromSequence(new[] { (IList<object>)new List<object> { "a", 1 } });
        await client.CreateSender("queue.1").SendMessagesAsync(new[] { value, sequence });
        var got = await client.CreateReceiver("queue.1").ReceiveMessagesAsync(2);
        Assert.That(got[0].GetRawAmqpMessage().Body.TryGetValue(out var first) && first.Equals(42));
        Assert.That(got[1].GetRawAmqpMessage().Body.TryGetSequence(out var second));
        Assert.That(second.Single(), Is.EqualTo(new object[] { "a", 1 }));
    }

    [Test]
    public async Task EachSettlementHasItsEffect()
    {
        await using var bus = await ServiceBusEmulator.StartAsync();
        await using var client = Sdk.Client(bus);
        await client.CreateSender("queue.1").SendMessageAsync(new ServiceBusMessage("1"));
        var receiver = client.CreateReceiver("queue.1");
        await receiver.AbandonMessageAsync(await receiver.ReceiveMessageAsync(), Property("x", 1));
        var message = await receiver.ReceiveMessageAsync();
        Assert.That((message.DeliveryCount, message.ApplicationProperties["x"]), Is.EqualTo((2, (object)1)));
        await receiver.DeferMessageAsync(message, Property("x", 2));
        message = await receiver.ReceiveDeferredMessageAsync(message.SequenceNumber);
        Assert.That((message.State, message.ApplicationProperties["x"]), Is.EqualTo((ServiceBusMessageState.Deferred, (object)2)));
        await receiver.DeadLetterMessageAsync(message, Property("x", 3), "reason", "description");
        var options = new ServiceBusReceiverOptions
        {
            SubQueue = SubQueue.DeadLetter, ReceiveMode = ServiceBusReceiveMode.ReceiveAndDelete,
        };
        message = await client.CreateReceiver("queue.1", options).ReceiveMessageAsync();
        Assert.That((message.DeadLetterReason, message.DeadLetterErrorDescription), Is.EqualTo(("reason", "description")));
        Assert.That(message.ApplicationProperties["x"], Is.EqualTo(3));
        await bus.AssertEmptyAsync("queue.1/$DeadLetterQueue");
    }

    [Test]
    public async Task BatchesAndPrefetchedMessagesKeepTheirOrder()
    {
        await using var bus = await ServiceBusEmulator.StartAsync();
        await using var client = Sdk.Client(bus);
        var sender = client.CreateSender("queue.1");
        using var batch = await sender.CreateMessageBatchAsync();
        Assert.That(batch.MaxSizeInBytes, Is.EqualTo(256 * 1024));
        Enumerable.Range(0, 20).ToList().ForEach(each => batch.TryAddMessage(new ServiceBusMessage($"{each}")));
        await sender.SendMessagesAsync(batch);
        var receiver = client.CreateReceiver("queue.1", new ServiceBusReceiverOptions { PrefetchCount = 10 });
        for (var expected = 0; expected < 20;)
        {
            foreach (var message in await receiver.ReceiveMessagesAsync(7))
            {
                Assert.That($"{message.Body}", Is.EqualTo($"{expected++}"));
                await receiver.CompleteMessageAsync(message);
            }
        }
    }

    [Test]
    public async Task MessagesAreScheduledAndCancelled()
    {
        await using var bus = await ServiceBusEmulator.StartAsync();
        await using var client = Sdk.Client(bus);
        var sender = client.CreateSender("queue.1");
        var due = await bus.NowAsync() + TimeSpan.FromHours(1);
        var numbers = await sender.ScheduleMessagesAsync(new[] { new ServiceBusMessage("1"), new ServiceBusMessage("2") }, due);
        await sender.CancelScheduledMessageAsync(numbers[0]);
        var reason = await Sdk.ReasonAsync(() => sender.CancelScheduledMessageAsync(numbers[0]));
        Assert.That(reason, Is.EqualTo(ServiceBusFailureReason.MessageNotFound));
        var receiver = client.CreateReceiver("queue.1");
        var peeked = await receiver.PeekMessageAsync();
        Assert.That(peeked.State, Is.EqualTo(ServiceBusMessageState.Scheduled));
        Assert.That(peeked.ScheduledEnqueueTime, Is.EqualTo(due).Within(TimeSpan.FromMilliseconds(1)));
        await bus.AdvanceAsync(TimeSpan.FromHours(1));
        Assert.That($"{(await receiver.ReceiveMessageAsync()).Body}", Is.EqualTo("2"));
    }

    [Test]
    public async Task TransactionsSettleAndSendInSeveralEntities()
    {
        await using var bus = await ServiceBusEmulator.StartAsync(new Topology { Queues = { "first", "second" } });
        await using var client = Sdk.Client(bus, new ServiceBusClientOptions { EnableCrossEntityTransactions = true });
        await client.CreateSender("first").SendMessageAsync(new ServiceBusMessage("1"));
        var receiver = client.CreateReceiver("first");
        var message = await receiver.ReceiveMessageAsync();
        var sender = client.CreateSender("second");
        foreach (var completes in new[] { false, true })
        {
            using (var scope = new TransactionScope(TransactionScopeAsyncFlowOption.Enabled))
            {
                await receiver.CompleteMessageAsync(message);
                await sender.SendMessagesAsync(new[] { new ServiceBusMessage("2"), new ServiceBusMessage("3") });
                if (completes)
                {
                    scope.Complete();
                }
            }
            await bus.AssertMessageCountAsync("first", new Expected { Active = completes ? 0 : 1 });
            await bus.AssertMessageCountAsync("second", new Expected { Active = completes ? 2 : 0 });
        }
    }

    [Test]
    public async Task AProcessorAbandonsAMessageWhoseHandlerFails()
    {
        await using var bus = await ServiceBusEmulator.StartAsync();
        await using var client = Sdk.Client(bus);
        var messages = Enumerable.Range(0, 20).Select(each => new ServiceBusMessage { MessageId = $"{each}" });
        await client.CreateSender("queue.1").SendMessagesAsync(messages);
        var options = new ServiceBusProcessorOptions { MaxConcurrentCalls = 4, PrefetchCount = 3 };
        await using var processor = client.CreateProcessor("queue.1", options);
        var errors = new List<ProcessErrorEventArgs>();
        processor.ProcessErrorAsync += error => Task.Run(() => errors.Add(error));
        processor.ProcessMessageAsync += each =>
            each.Message.MessageId == "7" && each.Message.DeliveryCount == 1 ? throw new FormatException() : Task.CompletedTask;
        await processor.StartProcessingAsync();
        await bus.AssertCompletedAsync("queue.1", new Expected { Count = 20 });
        await bus.AssertAbandonedAsync("queue.1", new Expected { MessageId = "7", Times = 1 });
        await processor.StopProcessingAsync();
        Assert.That(errors.Single().Exception, Is.InstanceOf<FormatException>());
    }

    [Test]
    public async Task AssertionsTakeNodesOfSystemTextJson()
    {
        await using var bus = await ServiceBusEmulator.StartAsync();
        await using var client = Sdk.Client(bus);
        await client.CreateSender("queue.1").SendMessageAsync(new ServiceBusMessage("{\"id\":\"o-17\",\"lines\":[1,null]}"));
        var receiver = client.CreateReceiver("queue.1");
        await receiver.CompleteMessageAsync(await receiver.ReceiveMessageAsync());
        var node = JsonNode.Parse("{\"id\":\"o-17\",\"lines\":[1,null]}");
        using var document = JsonDocument.Parse(node.ToJsonString());
        foreach (var body in new object[] { node, document, document.RootElement, new { id = node["id"], lines = node["lines"] } })
        {
            await bus.AssertCompletedAsync("queue.1", new Expected { BodyJson = body, Count = 1 });
        }
    }

    private static Type Type(KeyValuePair<string, object> property) => property.Value?.GetType();

    private static Dictionary<string, object> Property(string name, object value) =>
        new Dictionary<string, object> { [name] = value };
}
