module servicebus-emulator.example/servicebustest

go 1.22
