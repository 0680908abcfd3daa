"""The process of a server under load."""

import asyncio
import collections
import os
import re
import signal


class Server:
    """The server's process."""

    def __init__(self, process):
        self.process, self.address, self.models = process, None, []
        self.log, self.loads = collections.deque(maxlen=50), 0
        self.listens = asyncio.Event()

    @classmethod
    async def start(cls, command):
        pipe = asyncio.subprocess.PIPE
        environment = os.environ | {"NO_COLOR": "1"}
        server = cls(await asyncio.create_subprocess_exec(*command, stderr=pipe, stdin=asyncio.subprocess.DEVNULL, env=environment))
        server.reader = asyncio.create_task(server.read())
        await asyncio.wait_for(server.listens.wait(), 120)
        return server

    async def read(self):
        async for line in self.process.stderr:
            line = line.decode(errors="replace").rstrip()
            self.log.append(line)
            self.loads += " loaded model=" in line
            if "panicked" in line:
                print(f"PANIC: {line}", flush=True)
            found = re.match(r"listening on http://([\d.]+):(\d+), models: (.*)", line)
            if found:
                self.address, self.models = (found[1], int(found[2])), found[3].split(", ")
                self.listens.set()
        self.listens.set()

    def figures(self):
        """Resident memory in KiB, open handles, threads."""
        with open(f"/proc/{self.process.pid}/status") as status:
            fields = dict(line.split(":", 1) for line in status)
        handles = len(os.listdir(f"/proc/{self.process.pid}/fd"))
        return int(fields["VmRSS"].split()[0]), handles, int(fields["Threads"])

    async def stop(self):
        """Ends it as a service manager does. The exit status, or None if it had to be killed."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return await asyncio.wait_for(self.process.wait(), 90)
        except asyncio.TimeoutError:
            self.process.kill()
            return None
