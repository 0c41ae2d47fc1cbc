using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.ComponentModel;
using System.Diagnostics;
using System.Linq;
using System.Threading.Tasks;
using System.Xml.Linq;

namespace ServiceBus.Testing
{
    /// <summary>
    /// The process of an emulator. It ends when its standard input is closed, so it does not outlive this process.
    /// </summary>
    public sealed class EmulatorProcess
    {
        private const int KeptLines = 20;

        private static readonly TimeSpan StartTimeout = TimeSpan.FromSeconds(30);
        private static readonly TimeSpan StopTimeout = TimeSpan.FromSeconds(10);

        private static readonly Lazy<Task<EmulatorProcess>> SharedProcess =
            new Lazy<Task<EmulatorProcess>>(() => StartAsync(Options.ToArray()));

        private readonly Process process;
        private readonly ConcurrentQueue<string> lastLines = new ConcurrentQueue<string>();

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

        internal Control Control { get; private set; }

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
        public async Task StopAsync()
        {
            process.StandardInput.Close();
            await Task.Run(() => process.WaitForExit((int)StopTimeout.TotalMilliseconds) || Kill()).ConfigureAwait(false);
        }

        /// <summary>Ends the process; <c>await using</c> calls it.</summary>
        public Task DisposeAsync() => StopAsync();

        internal static Task<EmulatorProcess> SharedAsync() => SharedProcess.Value;

        private static ServiceBusEmulatorException NotStarted(string reason, Exception cause = null)
        {
            var settings = $"{nameof(EmulatorProcess)}.{nameof(Options)} and {EmulatorProgram.Variable}";
            return new ServiceBusEmulatorException($"the emulator did not start: {reason}; check {settings}", cause);
        }

        private static string Quoted(string option)
        {
            return option != "" && !option.Any(each => char.IsWhiteSpace(each) || each == '"')
                ? option
                : $"\"{option.TrimEnd('\\').Replace("\"", "\\\"")}\"";
        }

        private async Task WaitUntilReadyAsync(string program)
        {
            var line = process.StandardOutput.ReadLineAsync();
            await Task.WhenAny(line, Task.Delay(StartTimeout)).ConfigureAwait(false);
            var output = line.IsCompleted ? line.Result ?? "" : "";
            if (output.StartsWith("{\"event\":\"ready\"", StringComparison.Ordinal))
            {
                Ready = Json.Read(System.Text.Encoding.UTF8.GetBytes(output));
                Control = new Control(Ready.Text("http"), WhyItEnded);
                return;
            }
            if (line.IsCompleted)
            {
                process.WaitForExit(1000); // The program has closed its output, and writes its error.
            }
            Kill();
            var reason = line.IsCompleted ? $"{program} is not the emulator's program" : $"it was not ready within {StartTimeout.TotalSeconds} s";
            throw NotStarted(lastLines.FirstOrDefault() ?? reason);
        }

        /// <summary>Why the emulator does not respond.</summary>
        private string WhyItEnded()
        {
            if (!process.WaitForExit(1000))
            {
                return "the emulator is running but does not respond: stop the test run, and start it again";
            }
            process.WaitForExit();
            var line = lastLines.LastOrDefault();
            var message = $"the emulator exited with code {process.ExitCode} during the test run: start the run again";
            return line == null ? message : $"{message}; {line}";
        }

        private bool Kill()
        {
            try
            {
                process.Kill();
            }
            catch (InvalidOperationException)
            {
                // The process has ended already.
            }
            process.WaitForExit();
            return true;
        }

        private void Keep(string line)
        {
            if (!string.IsNullOrWhiteSpace(line))
            {
                lastLines.Enqueue(line);
            }
            if (lastLines.Count > KeptLines)
            {
                lastLines.TryDequeue(out _);
            }
        }
    }
}
