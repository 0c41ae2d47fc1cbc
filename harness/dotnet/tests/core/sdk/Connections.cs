using System;
using System.Linq;
using System.Net.Security;
using System.Security.Cryptography.X509Certificates;
using System.Text.RegularExpressions;
using System.Threading.Tasks;
using Azure.Identity;
using Azure.Messaging.ServiceBus;
using NUnit.Framework;
using ServiceBus.Testing;

/// <summary>Transports of the SDK, and errors.</summary>
public class Connections
{
    [Test]
    public async Task WebSocketsUseTheCustomAddress()
    {
        await using var bus = await ServiceBusEmulator.StartAsync();
        var options = new ServiceBusClientOptions
        {
            TransportType = ServiceBusTransportType.AmqpWebSockets,
            CustomEndpointAddress = new Uri($"http://{Address(bus.AdministrationConnectionString)}"),
        };
        await using var client = Sdk.Client(bus, options);
        await SendAndReceiveAsync(client);
    }

    [Test]
    public async Task ACallbackAcceptsTheCertificate()
    {
        await using var bus = await ServiceBusEmulator.StartAsync();
        using var authority = X509CertificateLoader.LoadCertificateFromFile(bus.CaCertificate);
        var options = new ServiceBusClientOptions
        {
            CustomEndpointAddress = new Uri($"sb://{Address(bus.TlsConnectionString)}"),
            CertificateValidationCallback = (_, _, chain, errors) =>
                errors == SslPolicyErrors.None || chain.ChainElements.Any(each => each.Certificate.Issuer == authority.Subject),
        };
        await using var client = new ServiceBusClient(bus.TlsConnectionString, options);
        await SendAndReceiveAsync(client);
    }

    [Test]
    public async Task TheEmulatorIsAManagedIdentity()
    {
        await using var bus = await ServiceBusEmulator.StartAsync();
        Environment.SetEnvironmentVariable("IDENTITY_ENDPOINT", $"http://{Address(bus.AdministrationConnectionString)}/msi/token");
        Environment.SetEnvironmentVariable("IDENTITY_HEADER", "any");
        var options = new ServiceBusClientOptions
        {
            CustomEndpointAddress = new Uri($"sb://{Address(bus.TlsConnectionString)}"),
            CertificateValidationCallback = (_, _, _, _) => true,
        };
        await using var client = new ServiceBusClient($"{bus.Name}.servicebus.windows.net", new DefaultAzureCredential(), options);
        await SendAndReceiveAsync(client);
    }

    [Test]
    public async Task ErrorsHaveTheirReasons()
    {
        var topology = new Topology { Queues = { "orders", new Queue("disabled") { ["Status"] = "Disabled" } } };
        await using var bus = await ServiceBusEmulator.StartAsync(topology);
        await using var client = Sdk.Client(bus);
        var orders = client.CreateSender("orders");
        var receiver = client.CreateReceiver("orders");
        var message = new ServiceBusMessage("an order");
        await orders.SendMessageAsync(message);
        var received = await receiver.ReceiveMessageAsync();
        await bus.AdvanceAsync(TimeSpan.FromMinutes(1));
        await bus.Faults.On("send", entity: "orders").ServerBusyAsync();
        var operations = new (ServiceBusFailureReason Reason, Func<Task> Operation)[]
        {
            (ServiceBusFailureReason.MessagingEntityNotFound, () => client.CreateSender("unknown").SendMessageAsync(message)),
            (ServiceBusFailureReason.MessagingEntityNotFound, () => client.CreateReceiver("unknown").PeekMessageAsync()),
            (ServiceBusFailureReason.MessagingEntityDisabled, () => client.CreateSender("disabled").SendMessageAsync(message)),
            (ServiceBusFailureReason.MessageLockLost, () => receiver.CompleteMessageAsync(received)),
            (ServiceBusFailureReason.MessageLockLost, () => receiver.RenewMessageLockAsync(received)),
            (ServiceBusFailureReason.MessageNotFound, () => receiver.ReceiveDeferredMessageAsync(99)),
            (ServiceBusFailureReason.ServiceBusy, () => orders.SendMessageAsync(message)),
            (ServiceBusFailureReason.MessageSizeExceeded, () => orders.SendMessageAsync(new ServiceBusMessage(new byte[300_000]))),
        };
        foreach (var (reason, operation) in operations)
        {
            Assert.That(await Sdk.ReasonAsync(operation), Is.EqualTo(reason));
        }
        var wrong = Regex.Replace(bus.ConnectionString, "SharedAccessKey=[^;]*", "SharedAccessKey=wrong");
        await using var stranger = new ServiceBusClient(wrong);
        var error = await Sdk.ErrorAsync(() => stranger.CreateSender("orders").SendMessageAsync(message));
        Assert.That(error, Is.InstanceOf<UnauthorizedAccessException>());
    }

    [Test]
    public async Task TheSdkReconnects()
    {
        await using var bus = await ServiceBusEmulator.StartAsync();
        var retries = new ServiceBusRetryOptions { Delay = TimeSpan.FromMilliseconds(10) };
        await using var client = new ServiceBusClient(bus.ConnectionString, new ServiceBusClientOptions { RetryOptions = retries });
        var sender = client.CreateSender("queue.1");
        await sender.SendMessageAsync(new ServiceBusMessage("1"));
        await bus.Faults.On("send").DetachAsync();
        await sender.SendMessageAsync(new ServiceBusMessage("2"));
        await bus.Faults.On("send").DropConnectionAsync();
        await sender.SendMessageAsync(new ServiceBusMessage("3"));
        await bus.Faults.ServiceUpdateAsync();
        await sender.SendMessageAsync(new ServiceBusMessage("4"));
        await bus.AssertMessageCountAsync("queue.1", new Expected { Active = 4 });
    }

    private static string Address(string connectionString) => Regex.Match(connectionString, "sb://([^;/]*)").Groups[1].Value;

    private static async Task SendAndReceiveAsync(ServiceBusClient client)
    {
        await client.CreateSender("queue.1").SendMessageAsync(new ServiceBusMessage("an order"));
        var receiver = client.CreateReceiver("queue.1");
        var message = await receiver.ReceiveMessageAsync();
        Assert.That($"{message.Body}", Is.EqualTo("an order"));
        await receiver.CompleteMessageAsync(message);
    }
}
