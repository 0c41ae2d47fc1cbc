using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;

namespace ServiceBus.Testing
{
    /// <summary>Finds the program of the emulator.</summary>
    internal static class EmulatorProgram
    {
        internal const string Variable = "SERVICEBUS_EMULATOR_BIN";

        private const uint Executable = 0x1ed; // rwxr-xr-x

        private static readonly bool OnWindows = RuntimeInformation.IsOSPlatform(OSPlatform.Windows);
        private static readonly string OperatingSystem =
            OnWindows ? "win" : RuntimeInformation.IsOSPlatform(OSPlatform.OSX) ? "osx" : "linux";
        private static readonly string Platform = $"{OperatingSystem}-{RuntimeInformation.OSArchitecture.ToString().ToLowerInvariant()}";
        private static readonly string FileName = OnWindows ? "servicebus-emulator.exe" : "servicebus-emulator";

        /// <summary>The program in <c>SERVICEBUS_EMULATOR_BIN</c>, else that of the package, else the one on <c>PATH</c>.</summary>
        internal static string Find()
        {
            var named = Environment.GetEnvironmentVariable(Variable);
            if (!string.IsNullOrEmpty(named))
            {
                return File.Exists(named)
                    ? named
                    : throw new ServiceBusEmulatorException($"{Variable} is {named}, which is not a file: correct the path, or unset it");
            }
            var packed = Found(PackageDirectories());
            if (packed != null && !OnWindows)
            {
                // Packages do not keep file modes. If the mode cannot be changed, starting the program reports it.
                _ = ChangeMode(packed, Executable);
            }
            return packed ?? Found(Listed(Environment.GetEnvironmentVariable("PATH"))) ?? throw new ServiceBusEmulatorException(
                $"this package has no emulator for {Platform}, and PATH has none: build it with "
                + $"`cargo build --release -p servicebus-emulator` and set {Variable} to the program");
        }

        /// <summary>
        /// The directories that may contain the native files of a package: beside the output, the output itself if it is for one
        /// platform, those where the runtime searches for native libraries, and the folder of restored packages.
        /// </summary>
        private static IEnumerable<string> PackageDirectories()
        {
            var native = Path.Combine("runtimes", Platform, "native");
            var output = AppContext.BaseDirectory;
            var library = typeof(EmulatorProgram).Assembly.Location;
            // The library has no location in an output that is a single file.
            var assembly = library == "" ? output : Path.GetDirectoryName(library);
            return new[] { Path.Combine(output, native), output, Path.Combine(assembly, native), assembly }
                .Concat(Listed(AppDomain.CurrentDomain.GetData("NATIVE_DLL_SEARCH_DIRECTORIES") as string))
                .Append(Path.Combine(assembly, "..", "..", native));
        }

        private static IEnumerable<string> Listed(string directories) =>
            (directories ?? "").Split(new[] { Path.PathSeparator }, StringSplitOptions.RemoveEmptyEntries);

        private static string Found(IEnumerable<string> directories) =>
            directories.Select(each => Path.Combine(each, FileName)).FirstOrDefault(File.Exists);

        [DllImport("libc", EntryPoint = "chmod")]
        private static extern int ChangeMode(string path, uint mode);
    }
}
