// Replaces Microsoft's SDK, which is not available for these tests: the calls that the tests and the README use, over the REST API
// of Service Bus.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Security.Cryptography;
using System.Text;
using System.Threading.Tasks;

namespace Azure.Messaging.ServiceBus
{
    public sealed class ServiceBusMessage
    {
        public ServiceBusMessage(string body)
        {
            Body = body;
        }

        public string Body { get; }

        public string MessageId { get; set; }

        public string SessionId { get; set; }

        public TimeSpan? TimeToLive { get; set; }

        internal string Properties()
        {
            var members = new[]
            {
                MessageId == null ? null : $"\"MessageId\":\"{MessageId}\"",
                SessionId == null ? null : $"\"SessionId\":\"{SessionId}\"",
                TimeToLive == null ? null : $"\"TimeToLive\":{TimeToLive.Value.TotalSeconds}",
            };
            return "{" + string.Join(",", members.Where(each => each != null)) + "}";
        }
    }

    public sealed class ServiceBusReceivedMessage
    {
        internal ServiceBusReceivedMessage(string body, Uri location)
        {
            Body = body;
            Location = location;
        }

        public string Body { get; }

        internal Uri Location { get; }
    }

    public sealed class ServiceBusException : Exception
    {
        internal ServiceBusException(string message)
            : base(message)
        {
        }
    }

    public sealed class ServiceBusClient
    {
        private static readonly HttpClient Client = new HttpClient();

        private readonly Dictionary<string, string> parts;

        public ServiceBusClient(string connectionString)
        {
            parts = connectionString.Split(';').Where(each => each != "")
                .Select(each => each.Split(new[] { '=' }, 2)).ToDictionary(each => each[0], each => each[1]);
        }

        public ServiceBusSender CreateSender(string entity) => new ServiceBusSender(this, entity);

        public ServiceBusReceiver CreateReceiver(string entity) => new ServiceBusReceiver(this, entity);

        public Task DisposeAsync() => Task.FromResult(0);

        internal Uri Address(string path) => new Uri(parts["Endpoint"].Replace("sb://", "http://") + "/" + path);

        internal async Task<HttpResponseMessage> AskAsync(HttpMethod method, Uri address, ServiceBusMessage message = null)
        {
            var request = new HttpRequestMessage(method, address);
            request.Headers.TryAddWithoutValidation("Authorization", Token(address.ToString()));
            if (message != null)
            {
                request.Content = new StringContent(message.Body, Encoding.UTF8, "text/plain");
                request.Headers.TryAddWithoutValidation("BrokerProperties", message.Properties());
            }
            var response = await Client.SendAsync(request);
            if (!response.IsSuccessStatusCode)
            {
                throw new ServiceBusException(await response.Content.ReadAsStringAsync());
            }
            return response;
        }

        private string Token(string address)
        {
            var resource = WebUtility.UrlEncode(address);
            var expiry = DateTimeOffset.UtcNow.AddHours(1).ToUnixTimeSeconds();
            using (var keyed = new HMACSHA256(Encoding.UTF8.GetBytes(parts["SharedAccessKey"])))
            {
                var signature = Convert.ToBase64String(keyed.ComputeHash(Encoding.UTF8.GetBytes($"{resource}\n{expiry}")));
                var name = parts["SharedAccessKeyName"];
                return $"SharedAccessSignature sr={resource}&sig={WebUtility.UrlEncode(signature)}&se={expiry}&skn={name}";
            }
        }
    }

    public sealed class ServiceBusSender
    {
        private readonly ServiceBusClient client;
        private readonly string entity;

        internal ServiceBusSender(ServiceBusClient client, string entity)
        {
            this.client = client;
            this.entity = entity;
        }

        public Task SendMessageAsync(ServiceBusMessage message)
        {
            return client.AskAsync(HttpMethod.Post, client.Address($"{entity}/messages"), message);
        }
    }

    public sealed class ServiceBusReceiver
    {
        private readonly ServiceBusClient client;
        private readonly string entity;

        internal ServiceBusReceiver(ServiceBusClient client, string entity)
        {
            this.client = client;
            this.entity = entity;
        }

        public async Task<ServiceBusReceivedMessage> ReceiveMessageAsync()
        {
            var address = client.Address($"{entity}/messages/head?timeout=30");
            var response = await client.AskAsync(HttpMethod.Post, address);
            return new ServiceBusReceivedMessage(await response.Content.ReadAsStringAsync(), response.Headers.Location);
        }

        public Task CompleteMessageAsync(ServiceBusReceivedMessage message) => client.AskAsync(HttpMethod.Delete, message.Location);
    }
}
