using System.Net.Http;
using System.Text;
using System.Text.Json;
using System.Text.RegularExpressions;
using Azure.Core;
using Azure.Messaging.ServiceBus.Administration;

/// <summary>The parameter of a case: a client of the SDK for its namespace, and the emulator's control API.</summary>
internal sealed class Bus : IAsyncDisposable
{
    private static readonly HttpClient Http = new HttpClient();

    private readonly Dictionary<string, string> environment;

    internal Bus(Dictionary<string, string> environment, string connectionString = null, ServiceBusClientOptions options = null)
    {
        this.environment = environment;
        options = Transport(options ?? new ServiceBusClientOptions());
        Client = new ServiceBusClient(connectionString ?? ConnectionString, options);
    }

    private Bus(Dictionary<string, string> environment, TokenCredential credential)
    {
        this.environment = environment;
        var host = new Uri(Endpoint).Host;
        Client = new ServiceBusClient(host, credential, Transport(new ServiceBusClientOptions()));
    }

    internal ServiceBusClient Client { get; }

    internal string ConnectionString => environment["SERVICEBUS_CONNECTION_STRING"];

    internal string AdministrationConnectionString => environment["SERVICEBUS_ADMIN_CONNECTION_STRING"];

    internal bool IsEager => environment["SERVICEBUS_EXPIRY"] == "eager";

    internal bool KeepsLocksOnDetach => environment["SERVICEBUS_LOCKS_ON_DETACH"] == "keep";

    internal IReadOnlyDictionary<string, string> Variables => environment;

    private string Endpoint => Regex.Match(ConnectionString, "Endpoint=([^;]*)").Groups[1].Value;

    public ValueTask DisposeAsync() => Client.DisposeAsync();

    /// <summary>The same namespace through a client that does not retry.</summary>
    internal Bus TryingOnce(string connectionString = null, double timeout = 60)
    {
        var retries = new ServiceBusRetryOptions { MaxRetries = 0, TryTimeout = TimeSpan.FromSeconds(timeout) };
        return new Bus(environment, connectionString, new ServiceBusClientOptions { RetryOptions = retries });
    }

    /// <summary>The same namespace through a client whose transactions may have several entities.</summary>
    internal Bus AcrossEntities() =>
        new Bus(environment, null, new ServiceBusClientOptions { EnableCrossEntityTransactions = true });

    /// <summary>The same namespace through a client with a credential.</summary>
    internal Bus WithCredential(TokenCredential credential) => new Bus(environment, credential);

    /// <summary>An administration client; it supports only TLS.</summary>
    internal ServiceBusAdministrationClient Administration(string connectionString = null) =>
        new ServiceBusAdministrationClient(connectionString ?? AdministrationConnectionString);

    internal ServiceBusSender Sender(string entity) => Client.CreateSender(entity);

    internal Receiver Receiver(string queue, SubQueue part = default, bool deletes = false, int prefetch = 0) =>
        Client.CreateReceiver(queue, Options(part, deletes, prefetch));

    internal Receiver DeadLetters(string queue, bool deletes = false) => Receiver(queue, SubQueue.DeadLetter, deletes);

    internal Receiver Subscriber(string topic, string subscription, SubQueue part = default, bool deletes = false) =>
        Client.CreateReceiver(topic, subscription, Options(part, deletes, 0));

    internal Task<ServiceBusSessionReceiver> Session(string queue, string id, bool deletes = false)
    {
        var mode = deletes ? ServiceBusReceiveMode.ReceiveAndDelete : ServiceBusReceiveMode.PeekLock;
        return Client.AcceptSessionAsync(queue, id, new ServiceBusSessionReceiverOptions { ReceiveMode = mode });
    }

    internal Task<ServiceBusSessionReceiver> NextSession(string queue) => Client.AcceptNextSessionAsync(queue);

    /// <summary>Sends the messages one by one.</summary>
    internal async Task Send(string entity, params Message[] messages)
    {
        await using var sender = Sender(entity);
        foreach (var message in messages)
        {
            await sender.SendMessageAsync(message);
        }
    }

    /// <summary>Sends the messages in one transfer.</summary>
    internal async Task SendTogether(string entity, params Message[] messages)
    {
        await using var sender = Sender(entity);
        await sender.SendMessagesAsync(messages);
    }

    /// <summary>Advances the namespace's clock, and completes after everything that is due by then has been processed.</summary>
    internal Task Advance(int seconds) => Request(HttpMethod.Post, "clock/advance", new { seconds });

    /// <summary>Changes these properties of a queue and keeps the others.</summary>
    internal Task Configure(string queue, object properties) => Request(HttpMethod.Put, $"queues/{queue}", properties);

    internal Task Delete(string queue) => Request(HttpMethod.Delete, $"queues/{queue}");

    /// <summary>Waits until the emulator's counts of an entity have these values, without a link to the entity.</summary>
    internal async Task Counts(string entity, params (string Name, long Value)[] expected)
    {
        for (var end = DateTime.UtcNow + Timeout; ; await Task.Delay(20))
        {
            var text = await Request(HttpMethod.Get, $"counts?entity={Uri.EscapeDataString(entity)}");
            using var counts = JsonDocument.Parse(text);
            var seen = expected.Select(each => (each.Name, counts.RootElement.GetProperty(each.Name).GetInt64())).ToArray();
            if (seen.SequenceEqual(expected))
            {
                return;
            }
            if (DateTime.UtcNow > end)
            {
                Equal($"counts of {entity}", seen, expected);
            }
        }
    }

    private static ServiceBusReceiverOptions Options(SubQueue part, bool deletes, int prefetch) => new ServiceBusReceiverOptions
    {
        SubQueue = part,
        ReceiveMode = deletes ? ServiceBusReceiveMode.ReceiveAndDelete : ServiceBusReceiveMode.PeekLock,
        PrefetchCount = prefetch,
    };

    private ServiceBusClientOptions Transport(ServiceBusClientOptions options)
    {
        var authority = new Uri(Endpoint).Authority;
        options.CustomEndpointAddress = environment["SERVICEBUS_TRANSPORT"] switch
        {
            "tls" => new Uri($"sb://{authority}"),
            "websocket" => new Uri($"http://{environment["SERVICEBUS_WEB_ADDRESS"]}"),
            "websocket-tls" => new Uri($"https://{authority}"),
            _ => null,
        };
        if (environment["SERVICEBUS_TRANSPORT"].StartsWith("websocket"))
        {
            options.TransportType = ServiceBusTransportType.AmqpWebSockets;
        }
        return options;
    }

    private async Task<string> Request(HttpMethod method, string path, object body = null)
    {
        using var request = new HttpRequestMessage(method, $"{environment["SERVICEBUS_CONTROL_URL"].TrimEnd('/')}/{path}");
        if (body != null)
        {
            request.Content = new StringContent(JsonSerializer.Serialize(body), Encoding.UTF8, "application/json");
        }
        using var answer = await Http.SendAsync(request);
        var text = await answer.Content.ReadAsStringAsync();
        return answer.IsSuccessStatusCode ? text : throw new Failure($"{path}: {answer.StatusCode} {text}");
    }
}
