// SPDX-License-Identifier: Apache-2.0

// Build the weighted graph of a relationship model with OpenFGA's own package, as the server does for its fast paths.
//
// Usage: model_graph MODEL.json. Exit with 1 and the reason if the graph cannot be built.
package main

import (
	"fmt"
	"os"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/graph"
	"google.golang.org/protobuf/encoding/protojson"
)

func build(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	model := &openfgav1.AuthorizationModel{}
	if err := protojson.Unmarshal(text, model); err != nil {
		return 0, err
	}
	built, err := graph.NewWeightedAuthorizationModelGraphBuilder().Build(model)
	if err != nil {
		return 0, err
	}
	return len(built.GetNodes()), nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: model_graph MODEL.json")
		os.Exit(2)
	}
	nodes, err := build(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("the weighted graph has %d nodes\n", nodes)
}
