using System;
using System.Collections.Concurrent;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Azure.Messaging.ServiceBus;
using NUnit.Framework;
using ServiceBus.Testing;

/// <summary>Sessions of the SDK.</summary>
public class Sessions
{
    private static readonly string[] Names = { "a", "b", "c" };
    private static readonly Topology Carts = new Topology { Queues = { new Queue("carts") { RequiresSession = true } } };

    [Test]
    public async Task SessionsAreAcceptedByNameAndInTheirOrder()
    {
        await using var bus = await ServiceBusEmulator.StartAsync(Carts);
        await using var client = Sdk.Client(bus);
        await SendAsync(client);
        var first = await client.AcceptSessionAsync("carts", "a");
        var reason = await Sdk.ReasonAsync(() => client.AcceptSessionAsync("carts", "a"));
        Assert.That(reason, Is.EqualTo(ServiceBusFailureReason.SessionCannotBeLocked));
        await first.SetSessionStateAsync(BinaryData.FromString("state"));
        Assert.That($"{await first.GetSessionStateAsync()}", Is.EqualTo("state"));
        await first.SetSessionStateAsync(null);
        Assert.That(await first.GetSessionStateAsync(), Is.Null);
        var lockedUntil = first.SessionLockedUntil;
        await first.RenewSessionLockAsync();
        Assert.That(first.SessionLockedUntil, Is.GreaterThan(lockedUntil));
        var second = await client.AcceptNextSessionAsync("carts");
        Assert.That(second.SessionId, Is.EqualTo("b"));
        var message = await second.ReceiveMessageAsync();
        await bus.LoseSessionLockAsync("carts", "b");
        reason = await Sdk.ReasonAsync(() => second.CompleteMessageAsync(message));
        Assert.That(reason, Is.EqualTo(ServiceBusFailureReason.SessionLockLost));
        await first.CloseAsync();
        await (await client.AcceptSessionAsync("carts", "a")).CloseAsync();
    }

    [Test]
    public async Task WaitingForASessionCanBeCancelled()
    {
        await using var bus = await ServiceBusEmulator.StartAsync(Carts);
        await using var client = Sdk.Client(bus);
        using var cancellation = new CancellationTokenSource();
        var waits = client.AcceptNextSessionAsync("carts", cancellationToken: cancellation.Token);
        await bus.WaitForReceiverAsync("carts");
        cancellation.Cancel();
        Assert.That(await Sdk.ErrorAsync(() => waits), Is.InstanceOf<OperationCanceledException>());
        await SendAsync(client);
        Assert.That((await client.AcceptNextSessionAsync("carts")).SessionId, Is.EqualTo("a"));
    }

    [Test]
    public async Task EntitiesWithSessionsRefuseOtherUse()
    {
        await using var bus = await ServiceBusEmulator.StartAsync(Carts);
        await using var client = Sdk.Client(bus);
        var error = await Sdk.ErrorAsync(() => client.CreateReceiver("carts").ReceiveMessageAsync());
        Assert.That(error, Is.InstanceOf<InvalidOperationException>());
        error = await Sdk.ErrorAsync(() => client.CreateSender("carts").SendMessageAsync(new ServiceBusMessage()));
        Assert.That(error, Is.InstanceOf<InvalidOperationException>());
    }

    [Test]
    public async Task AProcessorKeepsTheOrderOfEachSession()
    {
        await using var bus = await ServiceBusEmulator.StartAsync(Carts);
        await using var client = Sdk.Client(bus);
        await SendAsync(client);
        var options = new ServiceBusSessionProcessorOptions
        {
            MaxConcurrentSessions = 2, SessionIdleTimeout = TimeSpan.FromMilliseconds(100),
        };
        await using var processor = client.CreateSessionProcessor("carts", options);
        var processed = new ConcurrentQueue<string>();
        processor.ProcessErrorAsync += _ => Task.CompletedTask;
        processor.ProcessMessageAsync += async each =>
        {
            processed.Enqueue($"{each.Message.Body}");
            await each.SetSessionStateAsync(each.Message.Body);
        };
        await processor.StartProcessingAsync();
        await bus.AssertCompletedAsync("carts", new Expected { Count = 9 });
        await processor.StopProcessingAsync();
        foreach (var name in Names)
        {
            Assert.That(processed.Where(each => each.StartsWith(name)), Is.EqualTo(new[] { $"{name}0", $"{name}1", $"{name}2" }));
            await bus.AssertSessionStateAsync("carts", new Expected { Session = name, StateText = $"{name}2" });
        }
    }

    /// <summary>Three messages for each session.</summary>
    private static Task SendAsync(ServiceBusClient client) =>
        client.CreateSender("carts").SendMessagesAsync(
            from name in Names
            from number in Enumerable.Range(0, 3)
            select new ServiceBusMessage($"{name}{number}") { SessionId = name });
}
