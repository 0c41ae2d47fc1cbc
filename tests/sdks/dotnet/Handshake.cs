using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;

/// <summary>A TLS handshake of a server with a certificate and a client that trusts an authority.</summary>
internal static class Handshake
{
    /// <summary>Prints <c>trusted</c>, or why the certificate is not trusted.</summary>
    internal static async Task Perform(string authority, string certificate, string key, string name)
    {
        using var listener = new TcpListener(IPAddress.Loopback, 0);
        listener.Start();
        using var connected = new TcpClient();
        await connected.ConnectAsync((IPEndPoint)listener.LocalEndpoint);
        using var server = new SslStream((await listener.AcceptTcpClientAsync()).GetStream());
        var serving = server.AuthenticateAsServerAsync(X509Certificate2.CreateFromPemFile(certificate, key));
        using var client = new SslStream(connected.GetStream());
        var policy = new X509ChainPolicy
        {
            TrustMode = X509ChainTrustMode.CustomRootTrust, RevocationMode = X509RevocationMode.NoCheck,
            CustomTrustStore = { X509CertificateLoader.LoadCertificateFromFile(authority) },
        };
        try
        {
            var options = new SslClientAuthenticationOptions { TargetHost = name, CertificateChainPolicy = policy };
            await client.AuthenticateAsClientAsync(options);
            await serving;
            Console.WriteLine("trusted");
        }
        catch (AuthenticationException error)
        {
            Console.WriteLine(error.Message);
        }
    }
}
