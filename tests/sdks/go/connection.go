package main

// Authorization: clients that sign with a key, and clients with a token of an identity provider.
//
// Source: service-bus-authentication-and-authorization. The namespaces of the cases accept tokens without a signature.

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

var connectionCases = Cases{"token_credential": connectionTokenCredential, "expired_token": connectionExpiredToken}

// A client with a credential sends, receives and settles; it supports only TLS.
func connectionTokenCredential(bus *Bus) {
	bus = bus.withCredential(time.Hour)
	bus.send("orders", text("by token"))
	receiver := bus.receiver("orders")
	message := receiver.one()
	expect("body", body(message), "by token")
	receiver.complete(message)
	bus.expectCounts("orders", Counts{"active": 0, "locked": 0})
	check(bus.Close(soon()))
}

// A token that has expired is refused.
func connectionExpiredToken(bus *Bus) {
	bus = bus.withCredential(-time.Hour)
	expectCode(azservicebus.CodeUnauthorizedAccess, bus.trySend("orders", text("too late")))
	check(bus.Close(soon()))
}

// credential returns a token with this lifetime.
type credential struct{ lifetime time.Duration }

func (credential credential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	expiry := time.Now().Add(credential.lifetime)
	part := func(values Values) string { return base64.RawURLEncoding.EncodeToString(must(json.Marshal(values))) }
	claims := Values{"aud": "https://servicebus.azure.net", "sub": "a case", "exp": expiry.Unix()}
	token := part(Values{"alg": "none", "typ": "JWT"}) + "." + part(claims) + "."
	return azcore.AccessToken{Token: token, ExpiresOn: expiry}, nil
}

func (environment Environment) withCredential(lifetime time.Duration) *Bus {
	host := must(url.Parse(environment.endpoint())).Host
	return environment.busOf(must(azservicebus.NewClient(host, credential{lifetime}, environment.transport())))
}
