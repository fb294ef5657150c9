package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// billOfMaterials lists what a program is built from, in CycloneDX's JSON, from the build information that Go wrote into the
// program. The same program has the same bill: it bears no time, and its serial number comes from the program's bytes.
func billOfMaterials(name, version string, binary []byte) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(binary)
	root := cdx.Component{
		BOMRef: name, Type: cdx.ComponentTypeApplication, Name: name, Version: version,
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
	}
	var settings []cdx.Property
	for _, s := range info.Settings {
		settings = append(settings, cdx.Property{Name: "go:build:" + s.Key, Value: s.Value})
	}
	root.Properties = &settings
	std := strings.TrimPrefix(info.GoVersion, "go")
	components := []cdx.Component{library("std", std)}
	for _, d := range info.Deps {
		used := d
		if d.Replace != nil {
			used = d.Replace
		}
		c := library(used.Path, used.Version)
		if c.Hashes, err = hashes(used); err != nil {
			return nil, err
		}
		components = append(components, c)
	}
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bill := cdx.NewBOM()
	bill.SerialNumber = uuid.NewSHA1(uuid.NameSpaceOID, sum[:]).URN()
	bill.Metadata = &cdx.Metadata{Component: &root}
	bill.Components = &components
	bill.Dependencies = &[]cdx.Dependency{{Ref: root.BOMRef, Dependencies: &refs}}
	var b bytes.Buffer
	err = cdx.NewBOMEncoder(&b, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bill)
	return b.Bytes(), err
}

// library is a Go module, or the standard library.
func library(path, version string) cdx.Component {
	purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl}
}

// hashes turns the sum of go.sum, a SHA-256 over the module's files, into CycloneDX's form.
func hashes(m *debug.Module) (*[]cdx.Hash, error) {
	encoded, ok := strings.CutPrefix(m.Sum, "h1:")
	sum, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(sum) != sha256.Size {
		return nil, errors.Join(fmt.Errorf("the module %s has the sum %q, which is none of go.sum", m.Path, m.Sum), err)
	}
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}, nil
}
