using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;

namespace ServiceBus.Testing
{
    /// <summary>Where the program of the emulator lies.</summary>
    internal static class EmulatorProgram
    {
        internal const string Variable = "SERVICEBUS_EMULATOR_BIN";

        private const uint Executable = 0x1ed; // rwxr-xr-x

        private static readonly bool OnWindows = RuntimeInformation.IsOSPlatform(OSPlatform.Windows);
        private static readonly string FileName = OnWindows ? "servicebus-emulator.exe" : "servicebus-emulator";

        /// <summary>The program that the variable names, else that of the package, else the one on the path.</summary>
        internal static string Find()
        {
            var named = Environment.GetEnvironmentVariable(Variable);
            if (!string.IsNullOrEmpty(named))
            {
                return File.Exists(named)
                    ? named
                    : throw new ServiceBusEmulatorException($"{Variable} names {named}, which is no program: name one, or unset it");
            }
            var packed = PackageDirectories().Select(each => Path.Combine(each, FileName)).FirstOrDefault(File.Exists);
            if (packed != null)
            {
                return MadeExecutable(packed);
            }
            return Directories(Environment.GetEnvironmentVariable("PATH")).Select(each => Path.Combine(each, FileName)).FirstOrDefault(File.Exists)
                ?? throw new ServiceBusEmulatorException(
                    $"this package has no emulator for {Platform()}, and there is none on the path: build it with "
                    + $"`cargo build --release -p servicebus-emulator` and name it in {Variable}");
        }

        /// <summary>
        /// Where restoring and building leave what a package has for a platform: beside the output, in the output when that is
        /// of one platform, where the runtime looks for native libraries, and in the folder of restored packages.
        /// </summary>
        private static IEnumerable<string> PackageDirectories()
        {
            var native = Path.Combine("runtimes", Platform(), "native");
            var assembly = Path.GetDirectoryName(typeof(EmulatorProgram).Assembly.Location);
            foreach (var output in new[] { AppContext.BaseDirectory, assembly }.Where(each => !string.IsNullOrEmpty(each)))
            {
                yield return Path.Combine(output, native);
                yield return output;
            }
            foreach (var directory in Directories(AppDomain.CurrentDomain.GetData("NATIVE_DLL_SEARCH_DIRECTORIES") as string))
            {
                yield return directory;
            }
            if (!string.IsNullOrEmpty(assembly))
            {
                yield return Path.Combine(assembly, "..", "..", native);
            }
        }

        private static IEnumerable<string> Directories(string listed) =>
            (listed ?? "").Split(new[] { Path.PathSeparator }, StringSplitOptions.RemoveEmptyEntries);

        private static string Platform()
        {
            var system = OnWindows ? "win" : RuntimeInformation.IsOSPlatform(OSPlatform.OSX) ? "osx" : "linux";
            return $"{system}-{RuntimeInformation.OSArchitecture.ToString().ToLowerInvariant()}";
        }

        /// <summary>Packages keep no modes. Where this one may not be changed, starting it says so.</summary>
        private static string MadeExecutable(string program)
        {
            if (!OnWindows)
            {
                _ = ChangeMode(program, Executable);
            }
            return program;
        }

        [DllImport("libc", EntryPoint = "chmod")]
        private static extern int ChangeMode(string path, uint mode);
    }
}
