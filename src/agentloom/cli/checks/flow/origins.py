"""Functions and values whose results differ in another process or on another machine, by their dotted names.

The tables follow ``docs/guard.md``: what is virtual inside a run is an origin at import only.
"""

from __future__ import annotations

import ast
import re

from agentloom.runtime.redaction_names import is_secret_variable

__all__ = [
    "ATTRIBUTES",
    "AT_IMPORT",
    "ENVIRONMENT",
    "FACTS",
    "HIDDEN",
    "READS",
    "REFUSED",
    "VALUES",
    "WRITES",
    "effect_of",
    "is_credential",
    "origin_of",
]

VALUES: dict[str, str] = {
    **dict.fromkeys(
        "sys.executable sys.prefix sys.path inspect.getfile inspect.getsourcefile".split(), "folder"
    ),
    **dict.fromkeys("locale.currency locale.format_string locale.str locale.nl_langinfo".split(), "locale"),
    **dict.fromkeys(
        """traceback.format_exc traceback.format_exception traceback.format_stack traceback.format_tb""".split(),
        "traceback",
    ),
    **dict.fromkeys(
        """pandas.Timestamp.now pandas.Timestamp.utcnow pandas.Timestamp.today whenever.Instant.now
        whenever.ZonedDateTime.now""".split(),
        "unseen-clock",
    ),
    **dict.fromkeys("os.listdir os.scandir os.walk glob.glob glob.iglob".split(), "listing-order"),
    "posix.environ": "environment",
}
"""Dotted names of functions (their results) and of attributes (their values), and the rule that they belong to."""
FACTS: dict[str, str] = {
    **dict.fromkeys(
        """os.getcwd os.getcwdb pathlib.Path.cwd pathlib.Path.home os.path.expanduser os.path.abspath os.path.realpath
        tempfile.gettempdir""".split(),
        "folder",
    ),
    **dict.fromkeys(
        """platform.node platform.platform platform.machine platform.system platform.release platform.version
        platform.uname platform.processor socket.gethostname socket.getfqdn os.uname os.cpu_count os.getlogin
        os.getuid getpass.getuser os.getpid os.getppid threading.get_ident shutil.get_terminal_size
        os.get_terminal_size multiprocessing.cpu_count os.getloadavg""".split(),
        "machine",
    ),
    **dict.fromkeys("time.tzname time.timezone time.altzone time.daylight".split(), "time-zone"),
    **dict.fromkeys(
        """locale.getlocale locale.getdefaultlocale locale.getpreferredencoding locale.getencoding
        locale.localeconv""".split(),
        "locale",
    ),
    "sys.argv": "arguments",
}
"""What is recorded where a run asks for it, and is that of the process at import."""
ATTRIBUTES = frozenset(
    """time.tzname time.timezone time.altzone time.daylight sys.executable sys.prefix sys.path sys.argv
    posix.environ""".split()
)
"""Names of the tables that are no functions."""

_NUMPY = re.compile(
    r"numpy\.random\.(rand|randn|randint|random|random_sample|ranf|sample|choice|shuffle|permutation|bytes|normal|uniform"
    r"|beta|binomial|exponential|gamma|poisson|standard_normal|lognormal|geometric|dirichlet|multinomial)"
)
_UNSEEN_RANDOM = re.compile(
    r"_random\.Random|torch\.(rand|randn|randint|randperm|normal|bernoulli|multinomial)"
    r"|tensorflow\.random\.\w+"
)

AT_IMPORT = re.compile(
    r"time\.(time|time_ns|monotonic|monotonic_ns|perf_counter|perf_counter_ns|process_time|ctime|localtime|gmtime"
    r"|strftime|asctime)|datetime\.datetime\.(now|utcnow|today)|datetime\.date\.today|uuid\.uuid[1-8]|uuid\.getnode"
    r"|random\.(random|randint|choice|choices|sample|uniform|randrange|getrandbits|gauss|shuffle|betavariate)"
    r"|secrets\.\w+|os\.urandom|agentloom\.(uuid|now|random)"
)
"""What is virtual in a run and real at import."""
HIDDEN = re.compile(
    r"time\.(time|time_ns|monotonic|perf_counter|ctime|localtime)|datetime\.datetime\.(now|utcnow|today)"
    r"|datetime\.date\.today|uuid\.uuid[14]|random\.(random|randint|choice|uniform|sample|shuffle)|os\.urandom"
    r"|secrets\.\w+"
)
"""What the guard binds anew in modules, but not in containers."""
ENVIRONMENT = re.compile(r"os\.getenv|os\.environ\.get|os\.environb?|os\.environ\.setdefault")

WRITES: dict[str, str] = {
    **dict.fromkeys(
        """os.remove os.unlink os.rename os.replace os.mkdir os.makedirs os.rmdir os.removedirs os.symlink os.link
        os.truncate os.chmod os.utime shutil.copy shutil.copy2 shutil.copyfile shutil.copytree shutil.move
        shutil.rmtree tempfile.mkdtemp tempfile.mkstemp tempfile.NamedTemporaryFile tempfile.TemporaryDirectory
        tempfile.TemporaryFile numpy.save numpy.savetxt""".split(),
        "writes files",
    ),
    **dict.fromkeys(
        """subprocess.run subprocess.call subprocess.check_call subprocess.check_output subprocess.Popen
        subprocess.getoutput os.system os.popen os.fork os.execv os.spawnv asyncio.create_subprocess_exec
        asyncio.create_subprocess_shell""".split(),
        "starts a process",
    ),
    **dict.fromkeys(
        """socket.socket socket.create_connection socket.getaddrinfo smtplib.SMTP smtplib.SMTP_SSL ftplib.FTP
        http.client.HTTPConnection http.client.HTTPSConnection asyncio.open_connection""".split(),
        "reaches the network",
    ),
    **dict.fromkeys(
        "sqlite3.connect psycopg.connect psycopg2.connect pymysql.connect asyncpg.connect aiosqlite.connect".split(),
        "opens a database",
    ),
    **dict.fromkeys(
        """multiprocessing.Process multiprocessing.Pool concurrent.futures.ProcessPoolExecutor
        concurrent.futures.process.ProcessPoolExecutor""".split(),
        "starts processes",
    ),
    **dict.fromkeys(
        """os.umask os.nice os.chdir time.tzset signal.alarm signal.setitimer resource.setrlimit
        locale.setlocale""".split(),
        "changes the process",
    ),
    **dict.fromkeys("ctypes.CDLL ctypes.cdll.LoadLibrary ctypes.PyDLL".split(), "loads a library"),
}
READS = frozenset(
    "os.listdir os.scandir os.walk glob.glob glob.iglob os.stat os.path.exists os.path.getsize os.path.getmtime "
    "os.path.isfile os.path.isdir".split()
)
REFUSED = frozenset(
    """id os.getpid os.getppid os.getpgrp os.getsid threading.get_ident threading.get_native_id sys.getrefcount
    sys.getallocatedblocks gc.get_objects gc.get_count tracemalloc.get_traced_memory resource.getrusage""".split()
)
"""What a strict guard refuses because it is a number of the process."""


def origin_of(name: str, *, in_run: bool) -> str | None:
    """The rule of what ``name`` gives in a run, or at import; None where it gives nothing of note."""
    if _NUMPY.fullmatch(name) or _UNSEEN_RANDOM.fullmatch(name):
        return "unseen-random"
    return VALUES.get(name) or (None if in_run else FACTS.get(name))


def is_credential(name: ast.expr) -> bool:
    """Whether a variable of the environment holds a credential by its name: such a value is redacted anyway."""
    return isinstance(name, ast.Constant) and isinstance(name.value, str) and is_secret_variable(name.value)


def effect_of(name: str) -> str | None:
    """What a call of ``name`` does to the world, in words; None for nothing known."""
    return WRITES.get(name)
