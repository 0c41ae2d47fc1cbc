using System;
using System.IO;
using System.Linq;
using System.Text;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.Text;

/// <summary>The C# compiler of Roslyn, with the options of `csc`: NuGet has a program for it, but the packages used here do not.</summary>
internal static class Compile
{
    private static int Main(string[] arguments)
    {
        var given = CSharpCommandLineParser.Default.Parse(arguments, Directory.GetCurrentDirectory(), null);
        var sources = given.SourceFiles.Select(each => CSharpSyntaxTree.ParseText(
            SourceText.From(File.ReadAllText(each.Path), Encoding.UTF8), given.ParseOptions, each.Path));
        var references = given.MetadataReferences.Select(each => MetadataReference.CreateFromFile(each.Reference));
        var compilation = CSharpCompilation.Create(given.CompilationName, sources, references, given.CompilationOptions);
        var result = compilation.Emit(Path.Combine(given.OutputDirectory, given.OutputFileName));
        var shown = given.Errors.Concat(result.Diagnostics).Where(each => each.Severity >= DiagnosticSeverity.Warning).ToArray();
        Console.Write(string.Join("", shown.Select(each => $"{each}\n")));
        return result.Success && given.Errors.Length == 0 ? 0 : 1;
    }
}
