<?php
// Public names of IDs: the ID encrypted with a secret key, as text. docs/public-ids.md explains it.
//
// php public_ids.php FILE checks the lines of vectors.txt, or of a file like it. If anything does not hold, the
// program says what, and exits with 1.
declare(strict_types=1);

final class PublicIds
{
    // Without OPENSSL_ZERO_PADDING OpenSSL would add a second block.
    private const FLAGS = OPENSSL_RAW_DATA | OPENSSL_ZERO_PADDING;

    /** Keys: versions, letters from a to z, and keys of 24 bytes. The key of $current makes names. */
    public function __construct(
        #[\SensitiveParameter] private readonly array $keys,
        private readonly string $current,
    ) {
        foreach ($keys as $version => $key) {
            if (!preg_match('/^[a-z]$/D', (string) $version) || strlen($key) !== 24) {
                throw new InvalidArgumentException(
                    "key \"$version\": a version is one letter from a to z, and a key has 24 bytes");
            }
        }
    }

    public function nameOf(int $id): string
    {
        $block = openssl_encrypt(pack('J', $id), 'des-ede3-ecb', $this->keys[$this->current], self::FLAGS);
        return $this->current . rtrim(strtr(base64_encode($block), '+/', '-_'), '=');
    }

    /** The ID; of a name that was not made with a key of these, some number. */
    public function idOf(string $name): int
    {
        if (strlen($name) !== 12) {
            throw new InvalidArgumentException('a public name has 12 characters, not ' . strlen($name));
        }
        if (!preg_match('/^[a-z][A-Za-z0-9_-]{10}[AEIMQUYcgkosw048]$/D', $name)) {
            throw new InvalidArgumentException("not a public name: \"$name\"");
        }
        $key = $this->keys[$name[0]] ?? throw new InvalidArgumentException("no key of version \"$name[0]\"");
        $block = base64_decode(strtr(substr($name, 1), '-_', '+/'), true);
        return unpack('J', openssl_decrypt($block, 'des-ede3-ecb', $key, self::FLAGS))[1];
    }
}

function check(string|int $wanted, string|int $got): void
{
    if ($wanted !== $got) {
        fwrite(STDERR, "php: $got in place of $wanted\n");
        exit(1);
    }
}

function refusal(string $version, string $key, string $name): string
{
    try {
        return "$name is ID " . (new PublicIds([$version => $key], $version))->idOf($name);
    } catch (InvalidArgumentException $error) {
        return $error->getMessage();
    }
}

function main(string $file): void
{
    $keys = $vectors = [];
    foreach (file($file, FILE_IGNORE_NEW_LINES) as $line) {
        if ($line === '' || $line[0] === '#') {
            continue;
        }
        $vectors[] = $vector = explode(' ', $line, 5);
        if ($vector[0] === 'made') {
            $keys[$vector[1]] = hex2bin($vector[2]);
        }
    }
    foreach ($vectors as [$kind, $version, $key, $value, $result]) {
        if ($kind === 'made') {
            $ids = new PublicIds($keys, $version);
            check($result, $ids->nameOf((int) $value));
            check((int) $value, $ids->idOf($result));
        } else {
            check($result, refusal($version, hex2bin($key), $value));
        }
    }
    printf("php %s, %s: %d vectors hold\n", PHP_VERSION, OPENSSL_VERSION_TEXT, count($vectors));
}

if (realpath($argv[0] ?? '') === __FILE__) {
    main($argv[1]);
}
