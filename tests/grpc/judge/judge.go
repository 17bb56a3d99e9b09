// Package judge is the service that the server offers and the client asks for: the names of its methods and their shapes.
//
// Every message is a google.protobuf.BytesValue, so that nothing has to be generated. What a method makes of the octets stands
// beside its name.
package judge

import "google.golang.org/grpc"

// Service is the full name of the service.
const Service = "millstream.judge.Judge"

// Methods that take one message and answer with one.
const (
	// Unary answers with what it got.
	Unary = "Unary"
	// Fail takes "CODE MESSAGE" and fails with both.
	Fail = "Fail"
	// Sleep takes milliseconds and answers after them, or fails once its client's deadline is near.
	Sleep = "Sleep"
	// Sleeping answers with the number of calls of Sleep that run now.
	Sleeping = "Sleeping"
	// Metadata answers with the metadata it got as JSON, and sends metadata before and after.
	Metadata = "Metadata"
	// Release lets all calls of Hold go on, those to come too.
	Release = "Release"
)

// Methods with streams.
const (
	// ServerStream takes "COUNT SIZE" and answers with so many messages of so many octets, the first of which count up.
	ServerStream = "ServerStream"
	// ClientStream answers with "COUNT OCTETS" of what it got.
	ClientStream = "ClientStream"
	// Bidi answers each message with itself as it comes.
	Bidi = "Bidi"
	// Hold is a ClientStream that reads nothing before a call of Release.
	Hold = "Hold"
)

// Streams is how the methods with streams are described.
var Streams = map[string]*grpc.StreamDesc{
	ServerStream: {StreamName: ServerStream, ServerStreams: true},
	ClientStream: {StreamName: ClientStream, ClientStreams: true},
	Bidi:         {StreamName: Bidi, ServerStreams: true, ClientStreams: true},
	Hold:         {StreamName: Hold, ClientStreams: true},
}

// Path is a method's path in a request.
func Path(method string) string {
	return "/" + Service + "/" + method
}
