using System;
using System.Collections.Generic;
using System.ComponentModel;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Reflection;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading;
using System.Threading.Tasks;
using System.Xml.Linq;

namespace ServiceBus.Testing
{
    /// <summary>The emulator rejected a request, could not be started, or has ended.</summary>
    public sealed class ServiceBusEmulatorException : Exception
    {
        internal ServiceBusEmulatorException(string message, Exception cause = null) : base(message, cause) { }
    }

    /// <summary>
    /// The process of an emulator. It ends when its standard input is closed, so it does not outlive this process.
    /// </summary>
    public sealed class EmulatorProcess
    {
        private static readonly TimeSpan StartTimeout = TimeSpan.FromSeconds(30);
        private const int StopMilliseconds = 10_000;
        private const int ErrorMilliseconds = 1_000;

        private static readonly string Version =
            typeof(EmulatorProcess).Assembly.GetCustomAttribute<AssemblyInformationalVersionAttribute>().InformationalVersion;

        private static readonly HttpClient Client = new HttpClient(new HttpClientHandler { UseProxy = false })
        {
            // Longer than an assertion may wait.
            Timeout = TimeSpan.FromMinutes(11),
            // The emulator may close a pooled connection just when the next request uses it.
            DefaultRequestHeaders = { ConnectionClose = true, ExpectContinue = false },
        };

        private static readonly Regex LogLine = new Regex(@"^\d{4}-\d\d-\d\dT\S+ +(WARN|INFO|DEBUG|TRACE) ");
        private static readonly MediaTypeHeaderValue JsonType = new MediaTypeHeaderValue("application/json");

        /// <summary>The emulator that all tests of this process share.</summary>
        internal static readonly Lazy<Task<EmulatorProcess>> Shared =
            new Lazy<Task<EmulatorProcess>>(() => StartAsync(Options.ToArray()));

        private static IReadOnlyList<string> options = new string[0];

        private readonly Process process;
        /// <summary>Why a start failed: the first line of standard error that is not of the log, with the indented ones after it.</summary>
        private string firstError;
        private bool isFirstErrorComplete;
        private string lastError;

        private EmulatorProcess(string program, IEnumerable<string> options)
        {
            var arguments = string.Join(" ", options.Prepend("--for-tests").Select(Quoted));
            process = new Process
            {
                StartInfo = new ProcessStartInfo(program, arguments)
                {
                    CreateNoWindow = true, RedirectStandardError = true, RedirectStandardInput = true, RedirectStandardOutput = true,
                    StandardErrorEncoding = Encoding.UTF8, StandardOutputEncoding = Encoding.UTF8, UseShellExecute = false,
                },
            };
            process.ErrorDataReceived += (_, line) => Keep(line.Data);
        }

        /// <summary>
        /// Command-line options, such as <c>--tier premium</c>, for the emulator that all tests of this process share. It is started
        /// with the first namespace; setting them later throws.
        /// </summary>
        public static IReadOnlyList<string> Options
        {
            get => options;
            set => options = !Shared.IsValueCreated ? value : throw new ServiceBusEmulatorException(
                $"EmulatorProcess.Options were set to {Listed(value)}, but the emulator was started before with {Listed(options)}: "
                + "set them before the first namespace, or pass a separate EmulatorProcess to StartAsync");
        }

        /// <summary>The process id.</summary>
        public int Id => process.Id;

        internal XElement Ready { get; private set; }

        /// <summary>Starts a separate emulator with these command-line options.</summary>
        public static async Task<EmulatorProcess> StartAsync(params string[] options)
        {
            var program = EmulatorProgram.Find();
            var emulator = new EmulatorProcess(program, options);
            try
            {
                emulator.process.Start();
            }
            catch (Win32Exception error)
            {
                throw NotStarted($"{program}: {error.Message}", error);
            }
            emulator.process.BeginErrorReadLine();
            await emulator.WaitUntilReadyAsync(program).ConfigureAwait(false);
            return emulator;
        }

        /// <summary>Ends the process.</summary>
        public Task StopAsync() => EndAsync(StopMilliseconds);

        /// <summary>Ends the process; <c>await using</c> calls it.</summary>
        public Task DisposeAsync() => StopAsync();

        /// <summary>Sends a request and returns the response; an error is thrown.</summary>
        internal async Task<XElement> AskAsync(string method, string path, string json, CancellationToken cancellationToken)
        {
            var target = $"/$emulator/v1/{path}";
            var request = new HttpRequestMessage(new HttpMethod(method), $"http://{(string)Ready.Element("http")}{target}");
            request.Content = json == null ? null : new ByteArrayContent(Encoding.UTF8.GetBytes(json)) { Headers = { ContentType = JsonType } };
            try
            {
                // Its content has been read when this completes, so that it holds nothing to dispose of.
                var response = await Client.SendAsync(request, cancellationToken).ConfigureAwait(false);
                var text = await response.Content.ReadAsStringAsync().ConfigureAwait(false);
                var isJson = response.Content.Headers.ContentType?.MediaType == JsonType.MediaType && text != "";
                var answer = isJson ? Json.Read(text) : new XElement("root");
                return response.IsSuccessStatusCode ? answer : throw new ServiceBusEmulatorException(
                    (string)answer.Element("error")?.Element("text") ?? $"the emulator responded with {(int)response.StatusCode}: {text}");
            }
            catch (Exception error) when (!cancellationToken.IsCancellationRequested
                && (error is HttpRequestException || error is IOException || error is OperationCanceledException))
            {
                throw new ServiceBusEmulatorException($"{WhyItEnded()} ({method} {target}: {error.GetBaseException().Message})");
            }
        }

        private static ServiceBusEmulatorException NotStarted(string reason, Exception cause = null)
        {
            var settings = $"{nameof(EmulatorProcess)}.{nameof(Options)} and {EmulatorProgram.Variable}";
            return new ServiceBusEmulatorException($"the emulator did not start: {reason}; check {settings}", cause);
        }

        private static string Listed(IEnumerable<string> options) => $"[{string.Join(" ", options)}]";

        /// <summary>A quote in an option has a backslash before it; backslashes before a quote are doubled.</summary>
        private static string Quoted(string option) => $"\"{Regex.Replace(option, "(\\\\*)(\\\\$|\")", @"$1$1\$2")}\"";

        private async Task WaitUntilReadyAsync(string program)
        {
            var line = process.StandardOutput.ReadLineAsync();
            var hasLine = await Task.WhenAny(line, Task.Delay(StartTimeout)).ConfigureAwait(false) == line;
            var isReady = hasLine && line.Result?.StartsWith("{\"event\":\"ready\"", StringComparison.Ordinal) == true;
            Ready = isReady ? Json.Read(line.Result) : null;
            var version = (string)Ready?.Element("version");
            if (version == Version)
            {
                return;
            }
            await EndAsync(ErrorMilliseconds).ConfigureAwait(false);
            if (isReady)
            {
                throw NotStarted($"{program} is version {version}, but this package is version {Version}");
            }
            var reason = hasLine ? $"{program} is not the emulator's program" : $"it was not ready within {StartTimeout.TotalSeconds} s";
            throw NotStarted(firstError ?? reason);
        }

        /// <summary>Why the emulator does not respond.</summary>
        private string WhyItEnded()
        {
            if (!process.WaitForExit(ErrorMilliseconds))
            {
                return "the emulator is running but does not respond: stop the test run, and start it again";
            }
            WaitForErrors();
            var message = $"the emulator exited with code {process.ExitCode} during the test run: start the run again";
            return lastError == null ? message : $"{message}; {lastError}";
        }

        private Task EndAsync(int milliseconds) => Task.Run(() =>
        {
            process.StandardInput.Close();
            try
            {
                if (!process.WaitForExit(milliseconds))
                {
                    process.Kill();
                }
            }
            catch (InvalidOperationException)
            {
                // The process has ended meanwhile.
            }
            WaitForErrors();
        });

        /// <summary>Waits until the errors have been read, but not for another process that has inherited standard error.</summary>
        private void WaitForErrors() => Task.Run(() => process.WaitForExit()).Wait(ErrorMilliseconds);

        private void Keep(string line)
        {
            if (string.IsNullOrWhiteSpace(line))
            {
                return;
            }
            lastError = line;
            if (firstError == null && !LogLine.IsMatch(line))
            {
                firstError = line;
            }
            else if (firstError != null)
            {
                isFirstErrorComplete |= !line.StartsWith(" ", StringComparison.Ordinal);
                firstError += isFirstErrorComplete ? "" : $" {line.Trim()}";
            }
        }
    }
}
