using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Text;
using System.Threading.Tasks;
using System.Xml.Linq;

namespace ServiceBus.Testing
{
    /// <summary>Requests to the emulator's control API.</summary>
    internal sealed class Control
    {
        private static readonly HttpClient Client = NewClient();

        private readonly string address;
        private readonly Func<string> whyItEnded;

        internal Control(string address, Func<string> whyItEnded)
        {
            this.address = address;
            this.whyItEnded = whyItEnded;
        }

        /// <summary>Sends a request and returns the response; an error is thrown.</summary>
        internal async Task<XElement> AskAsync(string method, string path, object body = null)
        {
            var target = $"/$emulator/v1/{path}";
            try
            {
                using (var request = new HttpRequestMessage(new HttpMethod(method), $"http://{address}{target}"))
                {
                    if (body != null)
                    {
                        request.Content = new ByteArrayContent(body as byte[] ?? Json.Write(body));
                        request.Content.Headers.ContentType = new MediaTypeHeaderValue("application/json");
                    }
                    using (var response = await Client.SendAsync(request).ConfigureAwait(false))
                    {
                        var text = await response.Content.ReadAsByteArrayAsync().ConfigureAwait(false);
                        var isJson = response.Content.Headers.ContentType?.MediaType == "application/json" && text.Length > 0;
                        var answer = isJson ? Json.Read(text) : new XElement("root");
                        if ((int)response.StatusCode < 400)
                        {
                            return answer;
                        }
                        throw new ServiceBusEmulatorException(
                            answer.Element("error")?.Text("text")
                            ?? $"the emulator responded with {(int)response.StatusCode}: {Encoding.UTF8.GetString(text)}");
                    }
                }
            }
            catch (Exception error) when (error is HttpRequestException || error is IOException || error is OperationCanceledException)
            {
                throw new ServiceBusEmulatorException($"{whyItEnded()} ({method} {target}: {error.GetBaseException().Message})");
            }
        }

        /// <summary>A path with a query, without parameters that are null.</summary>
        internal static string Query(string path, params string[] pairs)
        {
            var parameters = Enumerable.Range(0, pairs.Length / 2)
                .Where(each => pairs[2 * each + 1] != null)
                .Select(each => $"{pairs[2 * each]}={Uri.EscapeDataString(pairs[2 * each + 1])}");
            var query = string.Join("&", parameters);
            return query == "" ? path : $"{path}?{query}";
        }

        private static HttpClient NewClient()
        {
            // Longer than an assertion may wait.
            var client = new HttpClient(new HttpClientHandler { UseProxy = false }) { Timeout = TimeSpan.FromMinutes(11) };
            client.DefaultRequestHeaders.ExpectContinue = false;
            // The emulator may close a pooled connection just when the next request uses it.
            client.DefaultRequestHeaders.ConnectionClose = true;
            return client;
        }
    }
}
