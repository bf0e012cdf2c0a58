<?php
// Public names of IDs: the ID encrypted with a secret key, as text. docs/public-ids.md explains it.
//
// php public_ids.php FILE checks the lines of vectors.txt, or of a file like it. If anything does not hold, the
// program says what, and exits with 1.
declare(strict_types=1);

final class PublicIds
{
    // By the length of a key: its cipher, and the zeros that fill up the block behind the ID.
    private const CIPHERS = [32 => ['aes-256-ecb', "\0\0\0\0\0\0\0\0"], 24 => ['des-ede3-ecb', '']];
    // Without OPENSSL_ZERO_PADDING OpenSSL would add a second block.
    private const FLAGS = OPENSSL_RAW_DATA | OPENSSL_ZERO_PADDING;

    /** Keys: versions, letters from a to z, and keys of 32 bytes (AES) or 24 (3DES). That of $current makes names. */
    public function __construct(
        #[\SensitiveParameter] private readonly array $keys,
        private readonly string $current,
    ) {
        foreach ($keys as $version => $key) {
            self::checkKey((string) $version, $key);
        }
    }

    private static function checkKey(string $version, #[\SensitiveParameter] string $key): void
    {
        if (!preg_match('/^[a-z]$/D', $version) || !isset(self::CIPHERS[strlen($key)])) {
            throw new InvalidArgumentException("key \"$version\": a version is one letter from a to z, "
                . 'and a key has 32 bytes (AES) or 24 (3DES)');
        }
        $parts = array_map(fn ($part) => $part & ~0x0101010101010101, unpack('J*', $key));
        if (array_unique($parts) !== $parts) { // 3DES would be DES; random keys have none
            throw new InvalidArgumentException("key \"$version\" is weak: two of its parts of 8 bytes are equal");
        }
    }

    public function nameOf(int $id): string
    {
        $key = $this->keys[$this->current];
        [$cipher, $zeros] = self::CIPHERS[strlen($key)];
        $block = openssl_encrypt(pack('J', $id) . $zeros, $cipher, $key, self::FLAGS);
        return $this->current . rtrim(strtr(base64_encode($block), '+/', '-_'), '=');
    }

    /** The ID. A name that was not made with a key of these is an error with AES, and some number with 3DES. */
    public function idOf(string $name): int
    {
        if (strlen($name) !== 23 && strlen($name) !== 12) {
            throw new InvalidArgumentException(
                'a public name has 23 characters, or 12 with 3DES, not ' . strlen($name));
        }
        if (!preg_match('/^[a-z]([A-Za-z0-9_-]{21}[AQgw]|[A-Za-z0-9_-]{10}[AEIMQUYcgkosw048])$/D', $name)) {
            throw new InvalidArgumentException("not a public name: \"$name\"");
        }
        $key = $this->keys[$name[0]] ?? throw new InvalidArgumentException("no key of version \"$name[0]\"");
        [$cipher, $zeros] = self::CIPHERS[strlen($key)];
        $block = base64_decode(strtr(substr($name, 1), '-_', '+/'), true);
        if (strlen($block) === 8 + strlen($zeros)) {
            $block = openssl_decrypt($block, $cipher, $key, self::FLAGS);
            if (substr($block, 8) === $zeros) {
                return unpack('J', $block)[1];
            }
        }
        throw new InvalidArgumentException("not made with key \"$name[0]\": \"$name\"");
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
