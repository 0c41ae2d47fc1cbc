using System;
using System.IO;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Text;
using System.Threading.Tasks;
using System.Xml.Linq;

namespace ServiceBus.Testing
{
    /// <summary>The emulator rejected a request, could not be started, or has ended.</summary>
    public sealed class ServiceBusEmulatorException : Exception
    {
        internal ServiceBusEmulatorException(string message, Exception cause = null) : base(message, cause) { }
    }

    /// <content>Requests to the emulator's control API.</content>
    public sealed partial class EmulatorProcess
    {
        private static readonly HttpClient Client = new HttpClient(new HttpClientHandler { UseProxy = false })
        {
            // Longer than an assertion may wait.
            Timeout = TimeSpan.FromMinutes(11),
            // The emulator may close a pooled connection just when the next request uses it.
            DefaultRequestHeaders = { ConnectionClose = true, ExpectContinue = false },
        };

        /// <summary>Sends a request and returns the response; an error is thrown.</summary>
        internal async Task<XElement> AskAsync(string method, string path, string json = null)
        {
            var target = $"/$emulator/v1/{path}";
            var request = new HttpRequestMessage(new HttpMethod(method), $"http://{(string)Ready.Element("http")}{target}");
            if (json != null)
            {
                request.Content = new ByteArrayContent(Encoding.UTF8.GetBytes(json));
                request.Content.Headers.ContentType = new MediaTypeHeaderValue("application/json");
            }
            try
            {
                using (var response = await Client.SendAsync(request).ConfigureAwait(false))
                {
                    var text = await response.Content.ReadAsStringAsync().ConfigureAwait(false);
                    var isJson = response.Content.Headers.ContentType?.MediaType == "application/json" && text != "";
                    var answer = isJson ? Json.Read(text) : new XElement("root");
                    return response.IsSuccessStatusCode ? answer : throw new ServiceBusEmulatorException(
                        (string)answer.Element("error")?.Element("text")
                        ?? $"the emulator responded with {(int)response.StatusCode}: {text}");
                }
            }
            catch (Exception error) when (error is HttpRequestException || error is IOException || error is OperationCanceledException)
            {
                throw new ServiceBusEmulatorException($"{WhyItEnded()} ({method} {target}: {error.GetBaseException().Message})");
            }
        }
    }
}
