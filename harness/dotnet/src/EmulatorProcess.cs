using System;
using System.Collections.Generic;
using System.ComponentModel;
using System.Diagnostics;
using System.Linq;
using System.Text.RegularExpressions;
using System.Threading.Tasks;
using System.Xml.Linq;

namespace ServiceBus.Testing
{
    /// <summary>
    /// The process of an emulator. It ends when its standard input is closed, so it does not outlive this process.
    /// </summary>
    public sealed partial class EmulatorProcess
    {
        private static readonly TimeSpan StartTimeout = TimeSpan.FromSeconds(30);
        private const int StopMilliseconds = 10_000;
        private const int ErrorMilliseconds = 1_000;

        /// <summary>The emulator that all tests of this process share.</summary>
        internal static readonly Lazy<Task<EmulatorProcess>> Shared =
            new Lazy<Task<EmulatorProcess>>(() => StartAsync(Options.ToArray()));

        private readonly Process process;
        private string firstError;
        private string lastError;

        private EmulatorProcess(string program, IEnumerable<string> options)
        {
            var start = new ProcessStartInfo(program, string.Join(" ", options.Prepend("--for-tests").Select(Quoted)))
            {
                CreateNoWindow = true,
                RedirectStandardError = true,
                RedirectStandardInput = true,
                RedirectStandardOutput = true,
                UseShellExecute = false,
            };
            process = new Process { StartInfo = start };
            process.ErrorDataReceived += (_, line) => Keep(line.Data);
        }

        /// <summary>
        /// Command-line options, such as <c>--tier premium</c>, for the emulator that all tests of this process share. It is started
        /// with the first namespace.
        /// </summary>
        public static IReadOnlyList<string> Options { get; set; } = new string[0];

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

        private static ServiceBusEmulatorException NotStarted(string reason, Exception cause = null)
        {
            var settings = $"{nameof(EmulatorProcess)}.{nameof(Options)} and {EmulatorProgram.Variable}";
            return new ServiceBusEmulatorException($"the emulator did not start: {reason}; check {settings}", cause);
        }

        /// <summary>A quote in an option has a backslash before it; backslashes before a quote are doubled.</summary>
        private static string Quoted(string option) => $"\"{Regex.Replace(option, "(\\\\*)(\\\\$|\")", @"$1$1\$2")}\"";

        private async Task WaitUntilReadyAsync(string program)
        {
            var line = process.StandardOutput.ReadLineAsync();
            await Task.WhenAny(line, Task.Delay(StartTimeout)).ConfigureAwait(false);
            var hasLine = line.IsCompleted;
            if (hasLine && line.Result?.StartsWith("{\"event\":\"ready\"", StringComparison.Ordinal) == true)
            {
                Ready = Json.Read(line.Result);
                return;
            }
            await EndAsync(ErrorMilliseconds).ConfigureAwait(false);
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
            if (!string.IsNullOrWhiteSpace(line))
            {
                firstError = firstError ?? line;
                lastError = line;
            }
        }
    }
}
