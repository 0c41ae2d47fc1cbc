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
    /// The process of an emulator. It ends when its standard input closes, and so with this process, however that ends.
    /// </summary>
    public sealed class EmulatorProcess
    {
        private const int KeptLines = 20;

        private static readonly TimeSpan LongestStart = TimeSpan.FromSeconds(30);
        private static readonly TimeSpan LongestStop = TimeSpan.FromSeconds(10);

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
        /// Options of the command line, such as <c>--tier premium</c>, for the emulator that all tests of this process share. It is
        /// started with the first namespace.
        /// </summary>
        public static IReadOnlyList<string> Options { get; set; } = new string[0];

        /// <summary>The number of the process.</summary>
        public int Id => process.Id;

        internal Control Control { get; private set; }

        internal XElement Ready { get; private set; }

        /// <summary>Starts an emulator of your own with these options of its command line.</summary>
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
            await Task.Run(() => process.WaitForExit((int)LongestStop.TotalMilliseconds) || Kill()).ConfigureAwait(false);
        }

        /// <summary>Ends the process; <c>await using</c> calls it.</summary>
        public Task DisposeAsync() => StopAsync();

        internal static Task<EmulatorProcess> SharedAsync() => SharedProcess.Value;

        private static ServiceBusEmulatorException NotStarted(string why, Exception cause = null)
        {
            var what = $"{nameof(EmulatorProcess)}.{nameof(Options)} and {EmulatorProgram.Variable}";
            return new ServiceBusEmulatorException($"the emulator did not start: {why}; check {what}", cause);
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
            await Task.WhenAny(line, Task.Delay(LongestStart)).ConfigureAwait(false);
            var said = line.IsCompleted ? line.Result ?? "" : "";
            if (said.StartsWith("{\"event\":\"ready\"", StringComparison.Ordinal))
            {
                Ready = Json.Read(System.Text.Encoding.UTF8.GetBytes(said));
                Control = new Control(Ready.Text("http"), WhyItEnded);
                return;
            }
            if (line.IsCompleted)
            {
                process.WaitForExit(1000); // A program that has closed its output tells its reason.
            }
            Kill();
            var late = line.IsCompleted ? $"{program} is no emulator" : $"it was not ready within {LongestStart.TotalSeconds} s";
            throw NotStarted(lastLines.FirstOrDefault() ?? late);
        }

        /// <summary>What became of it, in a sentence.</summary>
        private string WhyItEnded()
        {
            if (!process.WaitForExit(1000))
            {
                return "the emulator runs and does not answer: end the run, and start it again";
            }
            process.WaitForExit();
            var words = lastLines.LastOrDefault();
            var ended = $"the emulator ended with exit code {process.ExitCode} in the middle of the run: start the run again";
            return words == null ? ended : $"{ended}; {words}";
        }

        private bool Kill()
        {
            try
            {
                process.Kill();
            }
            catch (InvalidOperationException)
            {
                // It has ended.
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
