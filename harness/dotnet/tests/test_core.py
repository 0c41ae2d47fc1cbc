"""The same tests with .NET 9, NUnit 3, the C# compiler of Roslyn and Azure.Messaging.ServiceBus, and tests of that SDK. The
snippets of the README are compiled as they are.

`SERVICEBUS_DOTNET` names the directory that `harness/dotnet/core` fills, and `DOTNET_ROOT` the one for the runtime.
"""

import json
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import test_package
from test_package import HERE, SNIPPETS

DIRECTORY = Path(os.environ["SERVICEBUS_DOTNET"])
AZURE = DIRECTORY / "azure/dist"
COMPILER = DIRECTORY / "compiler"
ROOT = Path(os.environ["DOTNET_ROOT"])
FRAMEWORK = "Microsoft.NETCore.App"
NUNIT = COMPILER / "nunit.framework.dll"
# With what it depends on; .NET 9 has the rest.
SDK = [
    AZURE / f"{name}.dll"
    for name in (
        *("Azure.Messaging.ServiceBus", "Azure.Core", "Azure.Core.Amqp", "Azure.Identity", "Microsoft.Azure.Amqp"),
        *("Microsoft.Bcl.AsyncInterfaces", "Microsoft.Identity.Client", "Microsoft.Identity.Client.Extensions.Msal"),
        *("Microsoft.IdentityModel.Abstractions", "System.ClientModel", "System.Memory.Data"),
    )
]
# Versions of assemblies differ from those that they were compiled with; at run time the newest is used.
OPTIONS = ["-warnaserror", "-nowarn:CS1701,CS1702"]


def install_runtime() -> str:
    """Arranges the runtime, which the package has beside its program, as .NET installs it; returns its version."""
    manifest = json.loads((AZURE / "azmcp.deps.json").read_text())
    target = manifest["runtimeTarget"]["name"]
    pack = next(name for name in manifest["targets"][target] if name.startswith(f"runtimepack.{FRAMEWORK}."))
    files = manifest["targets"][target][pack]
    version = pack.split("/")[1]
    shutil.rmtree(ROOT, ignore_errors=True)
    framework = ROOT / "shared" / FRAMEWORK / version
    framework.mkdir(parents=True)
    for name in [*files["runtime"], *files["native"]]:
        (framework / name).symlink_to(AZURE / name)
    kept = {"targets": {target: {pack: files}}, "libraries": {pack: manifest["libraries"][pack]}}
    (framework / f"{FRAMEWORK}.deps.json").write_text(json.dumps({"runtimeTarget": {"name": target}, **kept}))
    host = ROOT / "host/fxr" / version
    host.mkdir(parents=True)
    (host / "libhostfxr.so").symlink_to(AZURE / "libhostfxr.so")
    return version


VERSION = install_runtime()
REFERENCES = [f"-r:{file}" for file in (ROOT / "shared" / FRAMEWORK / VERSION).glob("*.dll") if file.name != "mscorlib.dll"]


def write_host(directory: Path, name: str, assembly: str) -> Path:
    """A program that runs an assembly beside it: the package's, with that name in place of its own assembly's."""
    config = {"runtimeOptions": {"framework": {"name": FRAMEWORK, "version": VERSION}}}
    (directory / f"{name}.runtimeconfig.json").write_text(json.dumps(config))
    own, other = (text.encode().ljust(64, b"\0") for text in ("azmcp.dll", assembly))
    program = directory / name
    program.write_bytes((AZURE / "azmcp").read_bytes().replace(own, other))
    program.chmod(0o755)
    return program


COMPILE = write_host(COMPILER, "compile", "compile.dll")


class Core(test_package.Library):
    """Tests with .NET; its runtime finds a native file of a package in the output, where `dotnet build` copies it."""

    def setUp(self) -> None:
        super().setUp()
        for file in (NUNIT, *SDK):
            shutil.copy(file, self.output)
        self.RUN = [str(write_host(self.output, "Waiting", "Waiting.exe"))]

    def test_the_sources_compile_in_each_version_of_csharp(self) -> None:
        for version in ("7.3", "8", "9", "10", "preview"):
            with self.subTest(version):
                compile("library", version, self.output / "Sources.dll", *(HERE.parent / "src").glob("*.cs"))

    def test_the_first_test_of_the_readme_compiles_with_nullable_types(self) -> None:
        self.write("First.cs", SNIPPETS[0])
        for version in ("8", "9", "10", "preview"):
            with self.subTest(version):
                references = [f"-r:{file}" for file in (self.library, *SDK)]
                compile("library", version, self.output / "First.dll", self.output / "First.cs", "-nullable:enable", *references)

    def test_the_program_is_found_in_restored_packages_and_on_the_path(self) -> None:
        self.program()
        shutil.move(self.output / test_package.PROGRAM, self.output)
        shutil.rmtree(self.output / "runtimes")
        self.starts()

    def test_the_sdk_works(self) -> None:
        self.build("Sdk.dll", *(HERE / "core/sdk").glob("*.cs"))
        output = self.nunit("Sdk.dll")
        self.assertRegex(output, r"Tests run: \d\d, Errors: 0, Failures: 0")

    def csharp(self, text: str) -> str:
        return text

    def build(self, name: str, *sources: Path) -> None:
        kind = "exe" if name.endswith(".exe") else "library"
        # Faults of these tests are on requests that the SDK does not send.
        uses_stub = HERE / "Namespaces.cs" in sources
        used = [f"-r:{file}" for file in (self.library, *([] if uses_stub else SDK))]
        used += [file for file in sources if uses_stub or file.name != "Azure.cs"]
        compile(kind, "10", self.output / name, *used, HERE / "core/Is.cs")

    def nunit(self, name: str) -> str:
        compile("exe", "10", self.output / "Run.dll", HERE / "core/Run.cs")
        run = write_host(self.output, "Run", "Run.dll")
        ended = subprocess.run([run, name], cwd=self.output, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return ended.stdout


def compile(kind: str, version: str, output: Path, *arguments: str | Path) -> None:
    options = [*OPTIONS, f"-target:{kind}", f"-langversion:{version}", f"-out:{output}"]
    command = [COMPILE, *options, *REFERENCES, f"-r:{NUNIT}", *arguments]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ended.returncode != 0:
        raise AssertionError(ended.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
