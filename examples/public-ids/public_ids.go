// Public names of IDs: the ID encrypted with a secret key, as text. docs/public-ids.md explains it.
//
// go run public_ids.go FILE checks the lines of vectors.txt, or of a file like it. If anything does not hold, the
// program says what, and exits with 1.
package main

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"unicode/utf8"
)

var (
	versionPattern = regexp.MustCompile(`^[a-z]$`)
	namePattern    = regexp.MustCompile(`^[a-z]([A-Za-z0-9_-]{21}[AQgw]|[A-Za-z0-9_-]{10}[AEIMQUYcgkosw048])$`)
)

// PublicIDs makes names and reads them. Goroutines can share it.
type PublicIDs struct {
	ciphers map[string]cipher.Block
	current string
}

// The cipher of a key: AES with 32 bytes, 3DES with 24.
func cipherOf(version string, key []byte) (cipher.Block, error) {
	if !versionPattern.MatchString(version) || len(key) != 32 && len(key) != 24 {
		return nil, fmt.Errorf(
			`key "%s": a version is one letter from a to z, and a key has 32 bytes (AES) or 24 (3DES)`, version)
	}
	parts := map[uint64]bool{}
	for i := 0; i < len(key); i += 8 {
		parts[binary.BigEndian.Uint64(key[i:])&0xfefefefefefefefe] = true
	}
	if len(parts) < len(key)/8 { // 3DES would be DES; random keys have none
		return nil, fmt.Errorf(`key "%s" is weak: two of its parts of 8 bytes are equal`, version)
	}
	if len(key) == 32 {
		return aes.NewCipher(key)
	}
	return des.NewTripleDESCipher(key)
}

// NewPublicIDs takes versions, letters from a to z, and keys of 32 bytes (AES) or 24 (3DES). The key of current makes
// names.
func NewPublicIDs(keys map[string][]byte, current string) (*PublicIDs, error) {
	ciphers := map[string]cipher.Block{}
	for version, key := range keys {
		block, err := cipherOf(version, key)
		if err != nil {
			return nil, err
		}
		ciphers[version] = block
	}
	if ciphers[current] == nil {
		return nil, fmt.Errorf(`no key of version "%s"`, current)
	}
	return &PublicIDs{ciphers, current}, nil
}

// NameOf is the public name of an ID. With AES, 8 zeros fill up the block.
func (p *PublicIDs) NameOf(id int64) string {
	block := make([]byte, p.ciphers[p.current].BlockSize())
	binary.BigEndian.PutUint64(block, uint64(id))
	p.ciphers[p.current].Encrypt(block, block)
	return p.current + base64.RawURLEncoding.EncodeToString(block)
}

// IDOf is the ID of a name. One that was not made with a key of these is an error with AES, and some number with 3DES.
func (p *PublicIDs) IDOf(name string) (int64, error) {
	if n := utf8.RuneCountInString(name); n != 23 && n != 12 {
		return 0, fmt.Errorf("a public name has 23 characters, or 12 with 3DES, not %d", n)
	}
	if !namePattern.MatchString(name) {
		return 0, fmt.Errorf(`not a public name: "%s"`, name)
	}
	key := p.ciphers[name[:1]]
	if key == nil {
		return 0, fmt.Errorf(`no key of version "%s"`, name[:1])
	}
	block, err := base64.RawURLEncoding.DecodeString(name[1:])
	if err != nil {
		return 0, err
	}
	if len(block) == key.BlockSize() {
		key.Decrypt(block, block)
		if len(block) == 8 || binary.BigEndian.Uint64(block[8:]) == 0 {
			return int64(binary.BigEndian.Uint64(block)), nil
		}
	}
	return 0, fmt.Errorf(`not made with key "%s": "%s"`, name[:1], name)
}

func check(wanted, got string) {
	if wanted != got {
		fmt.Fprintf(os.Stderr, "go: %s in place of %s\n", got, wanted)
		os.Exit(1)
	}
}

// The result of reading a name, as text: an ID or an error.
func read(keys map[string][]byte, version, name string) string {
	ids, err := NewPublicIDs(keys, version)
	if err != nil {
		return err.Error()
	}
	id, err := ids.IDOf(name)
	if err != nil {
		return err.Error()
	}
	return strconv.FormatInt(id, 10)
}

func main() {
	content, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	var vectors [][]string
	keys := map[string][]byte{}
	for _, line := range strings.Split(string(content), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		vector := strings.SplitN(line, " ", 5)
		vectors = append(vectors, vector)
		if vector[0] == "made" {
			keys[vector[1]], _ = hex.DecodeString(vector[2])
		}
	}
	for _, vector := range vectors {
		version, value, result := vector[1], vector[3], vector[4]
		if vector[0] == "made" {
			ids, err := NewPublicIDs(keys, version)
			if err != nil {
				panic(err)
			}
			id, _ := strconv.ParseInt(value, 10, 64)
			check(result, ids.NameOf(id))
			check(value, read(keys, version, result))
		} else {
			key, _ := hex.DecodeString(vector[2])
			check(result, read(map[string][]byte{version: key}, version, value))
		}
	}
	fmt.Printf("go %s: %d vectors hold\n", strings.TrimPrefix(runtime.Version(), "go"), len(vectors))
}
